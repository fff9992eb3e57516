import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { FFMPEG7 } from './ffmpeg.ts';

/** What ffmpeg puts out for its arguments, which name the format last. */
export async function encode(args: readonly string[], ffmpeg = FFMPEG7): Promise<Buffer> {
  const { stdout } = await promisify(execFile)(ffmpeg, ['-nostdin', '-v', 'error', ...args, 'pipe:1'], {
    encoding: 'buffer',
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
