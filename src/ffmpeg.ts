import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { runProgram } from './lib/run-program.ts';

const PROBE_TIMEOUT_MS = 10_000;

export interface Ffmpeg {
  readonly path: string;
  /** Text of the program itself: `5.1.9-0+deb12u1`, `n7.0`, `N-112233-gabc`. */
  readonly version: string;
}

/** There is no ffmpeg that runs; the message says what was tried and what to do. */
export class FfmpegError extends Error {
  override readonly name = 'FfmpegError';
}

/**
 * Finds ffmpeg: what KILN_FFMPEG names, else the file of the npm package ffmpeg-static when its
 * download is there, else `ffmpeg` on PATH.
 * @throws FfmpegError when none runs; a KILN_FFMPEG that does not run is never passed over
 */
export async function findFfmpeg(env: NodeJS.ProcessEnv = process.env): Promise<Ffmpeg> {
  if (env.KILN_FFMPEG) {
    const version = await probe(env.KILN_FFMPEG);
    if (version instanceof Error) throw new FfmpegError(`KILN_FFMPEG is no ffmpeg that runs: ${version.message}`);
    return { path: env.KILN_FFMPEG, version };
  }
  for (const path of [await staticPath(), 'ffmpeg']) {
    if (path === undefined) continue;
    const version = await probe(path, env.PATH);
    if (!(version instanceof Error)) return { path, version };
  }
  throw new FfmpegError('No ffmpeg found: install it (apt install ffmpeg) or name one in KILN_FFMPEG');
}

async function staticPath(): Promise<string | undefined> {
  try {
    const { default: path } = (await import('ffmpeg-static')) as unknown as { default: string | null };
    if (path === null) return undefined;
    await access(path, constants.X_OK);
    return path;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ERR_MODULE_NOT_FOUND' || code === 'ENOENT' || code === 'EACCES') return undefined;
    throw error;
  }
}

async function probe(path: string, searchPath = process.env.PATH): Promise<string | Error> {
  try {
    const env = { ...process.env, PATH: searchPath };
    const stdout = await runProgram(path, ['-version'], { timeoutMs: PROBE_TIMEOUT_MS, env });
    return /^ffmpeg version (\S+)/.exec(stdout)?.[1] ?? new Error(`${path} does not tell a version of ffmpeg`);
  } catch (error) {
    return error as Error;
  }
}
