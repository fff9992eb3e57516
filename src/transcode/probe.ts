import { runProgram } from '../run-program.ts';

const LIMIT_MS = 10_000;
const LISTED = /^ [VAS][A-Z.]{5} (\S+) /gm;

/** Names of what an ffmpeg was built with. */
export interface Capabilities {
  readonly path: string;
  readonly encoders: ReadonlySet<string>;
  readonly decoders: ReadonlySet<string>;
}

/** Asks an ffmpeg what it was built with. @throws Error when it does not answer within the time limit */
export async function probeFfmpeg(path: string): Promise<Capabilities> {
  const [encoders, decoders] = await Promise.all([list(path, '-encoders'), list(path, '-decoders')]);
  return { path, encoders, decoders };
}

async function list(path: string, what: string): Promise<Set<string>> {
  const stdout = await runProgram(path, ['-hide_banner', what], { timeoutMs: LIMIT_MS });
  return new Set(Array.from(stdout.matchAll(LISTED), ([, name]) => name as string));
}
