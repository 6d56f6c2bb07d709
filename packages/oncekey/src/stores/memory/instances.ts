/**
 * @module
 * Signs that this program runs more than once, in which case a store in memory protects each of them alone.
 *
 * They are hints of process managers and hosts; the absence of all of them proves nothing.
 */

interface ProcessLike {
  readonly env?: Readonly<Record<string, string | undefined>>;
  getBuiltinModule?(name: string): { readonly isWorker?: unknown } | undefined;
}

interface Sign {
  readonly found: (host: ProcessLike, env: Readonly<Record<string, string | undefined>>) => boolean;
  readonly says: string;
}

const SIGNS: readonly Sign[] = [
  {
    found: (host) => host.getBuiltinModule?.("node:cluster")?.isWorker === true,
    says: "this process is a worker of node:cluster",
  },
  {
    found: (_, env) => env.NODE_APP_INSTANCE !== undefined && env.NODE_APP_INSTANCE !== "0",
    says: "NODE_APP_INSTANCE is set: PM2 runs several instances",
  },
  { found: (_, env) => Number(env.instances) > 1, says: "PM2 was asked for more than one instance" },
  { found: (_, env) => Number(env.WEB_CONCURRENCY) > 1, says: "WEB_CONCURRENCY is more than 1" },
  { found: (_, env) => /\.([2-9]|\d\d+)$/.test(env.DYNO ?? ""), says: "DYNO is not the first of its kind" },
  {
    found: (_, env) => env.AWS_LAMBDA_FUNCTION_NAME !== undefined,
    says: "AWS Lambda runs one process per concurrent request and freezes it in between",
  },
  { found: (_, env) => env.VERCEL !== undefined, says: "Vercel starts and stops processes as it sees fit" },
  {
    found: (_, env) => env.K_SERVICE !== undefined,
    says: "Cloud Run starts and stops processes as it sees fit",
  },
  {
    found: (_, env) => env.KUBERNETES_SERVICE_HOST !== undefined,
    says: "Kubernetes may run several replicas, and does while it rolls out a new version",
  },
];

/** A sentence for each sign. Only looks at `globalThis.process`, if there is one. */
export function signsOfSeveralInstances(
  host: unknown = Reflect.get(globalThis, "process"),
): readonly string[] {
  if (typeof host !== "object" || host === null) return [];
  const process: ProcessLike = host;
  const env = process.env ?? {};
  return SIGNS.filter(({ found }) => found(process, env)).map(
    ({ says }) =>
      `${says}. Records in memory are seen by this process alone: a repeat that reaches another one runs again. Use a store that all of them share`,
  );
}
