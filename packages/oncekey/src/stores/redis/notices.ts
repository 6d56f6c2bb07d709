/**
 * @module
 * What the store has noticed about its servers, told to whoever listens, also to those who come later.
 *
 * Invariant: the same warning is told once to each listener; a listener that throws harms nobody.
 */
import type { StoreNotice, Watch } from "../../core/store.js";

export interface Notices {
  tell(notice: StoreNotice): void;
  listen(listener: (notice: StoreNotice) => void): Watch;
}

export function createNotices(): Notices {
  const warnings = new Map<string, StoreNotice>();
  const listeners = new Set<(notice: StoreNotice) => void>();

  return {
    tell(notice) {
      if (notice.kind === "warning") {
        if (warnings.has(notice.text)) return;
        warnings.set(notice.text, notice);
      }
      for (const listener of listeners) pass(listener, notice);
    },
    listen(listener) {
      const own = (notice: StoreNotice): void => listener(notice);
      for (const warning of warnings.values()) pass(own, warning);
      listeners.add(own);
      return { close: () => void listeners.delete(own) };
    },
  };
}

function pass(listener: (notice: StoreNotice) => void, notice: StoreNotice): void {
  try {
    listener(notice);
  } catch {
    // An observer's fault must not become the store's.
  }
}
