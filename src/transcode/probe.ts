import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
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
  const { stdout } = await run(path, ['-hide_banner', what], { timeout: LIMIT_MS, killSignal: 'SIGKILL' });
  return new Set(Array.from(stdout.matchAll(LISTED), ([, name]) => name as string));
}
