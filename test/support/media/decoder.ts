import { execFile } from 'node:child_process';

/** Decodes every stream of a file with ffmpeg. @returns what it says of it @throws at the first thing that is wrong */
export function decode(data: Buffer, format = 'mpegts'): Promise<string> {
  return new Promise((resolve, reject) => {
    const args = [
      '-loglevel',
      'warning',
      '-xerror',
      '-err_detect',
      'explode',
      '-f',
      format,
      '-i',
      'pipe:0',
      '-map',
      '0',
      '-f',
      'null',
      '-',
    ];
    const child = execFile('ffmpeg', args, (error, _, told) =>
      error === null ? resolve(told) : reject(new Error(told)),
    );
    child.stdin?.end(data);
  });
}
