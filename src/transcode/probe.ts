import { runProgram } from '../lib/run-program.ts';

const LIMIT_MS = 10_000;
/** The flags have a letter less since ffmpeg 8. */
const LISTED_FILTER = /^ [TSC.]{2,3} (\S+) +\S+->\S+ /gm;
const LISTED = /^ [VAS][A-Z.]{5} (\S+) /gm;

/** Encoders, decoders and filters of an ffmpeg build. */
export interface Capabilities {
  readonly path: string;
  readonly encoders: ReadonlySet<string>;
  readonly decoders: ReadonlySet<string>;
  readonly filters: ReadonlySet<string>;
}

/** Lists what an ffmpeg was built with. @throws Error if it does not answer within LIMIT_MS */
export async function probeFfmpeg(path: string): Promise<Capabilities> {
  const [encoders, decoders, filters] = await Promise.all([
    list(path, '-encoders', LISTED),
    list(path, '-decoders', LISTED),
    list(path, '-filters', LISTED_FILTER),
  ]);
  return { path, encoders, decoders, filters };
}

async function list(path: string, what: string, row: RegExp): Promise<Set<string>> {
  const stdout = await runProgram(path, ['-hide_banner', what], { timeoutMs: LIMIT_MS });
  return new Set(Array.from(stdout.matchAll(row), ([, name]) => name as string));
}
