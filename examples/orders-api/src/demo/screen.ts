/**
 * @module
 * The table that the demo prints, line by line as the scenes end. Colours only on a terminal that wants them.
 */
import { styleText } from "node:util";
import type { Ending, Scene } from "./scene.js";

const WIDTHS = { number: 2, happens: 39, clientSaw: 26, providerCounted: 23 } as const;
const VERDICT_WIDTH = 28;

export interface Screen {
  head(): void;
  /** Shown while a scene plays, where the line can be written again. */
  playing(scene: Scene): void;
  line(scene: Scene, ending: Ending): void;
  say(text: string): void;
  good(text: string): void;
  bad(text: string): void;
}

export function createScreen(output: NodeJS.WriteStream): Screen {
  const coloured = output.isTTY && output.hasColors() && !process.env.NO_COLOR;
  const paint = (style: Parameters<typeof styleText>[0], text: string): string =>
    coloured ? styleText(style, text) : text;
  const print = (text = ""): void => void output.write(`${text}\n`);

  function row(number: string, happens: string, clientSaw: string, providerCounted: string): string {
    return [
      number.padEnd(WIDTHS.number),
      happens.padEnd(WIDTHS.happens),
      clientSaw.padEnd(WIDTHS.clientSaw),
      providerCounted.padEnd(WIDTHS.providerCounted),
    ].join(" ");
  }

  return {
    head() {
      const titles = row("", "what happens", "the client saw", "the provider counted");
      print(paint("bold", `${titles}   verdict`));
      print(paint("dim", "─".repeat(titles.length + VERDICT_WIDTH)));
    },
    playing({ number, happens }) {
      if (output.isTTY) output.write(paint("dim", `${row(number, happens, "", "").trimEnd()} …`));
    },
    line({ number, happens, contrast }, { clientSaw, providerCounted, verdict, wrong }) {
      if (output.isTTY) output.write("\r\x1b[K");
      const good = contrast ? paint("yellow", "!") : paint("green", "✓");
      const mark = wrong.length === 0 ? good : paint("red", "✗");
      const meaning = wrong.length === 0 ? verdict : paint("red", "wrong");
      print(`${row(number, happens, clientSaw, providerCounted)} ${mark} ${meaning}`);
      for (const difference of wrong) print(paint("red", `${" ".repeat(WIDTHS.number + 1)}${difference}`));
    },
    say: print,
    good: (text) => print(paint("green", text)),
    bad: (text) => print(paint("red", text)),
  };
}
