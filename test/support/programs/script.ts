import { spawnSync } from 'node:child_process';

/**
 * Writes a shell script that can be run at once, and answers its path. A program of its own writes it: a file that this
 * process had open would stay open for writing in each child that another thread is starting, until that has become its
 * program, and could not be run before (ETXTBSY of execve(2)).
 */
export function writeScript(path: string, text: string): string {
  const { status, stderr, error } = spawnSync('/bin/sh', ['-c', 'cat >"$1" && chmod 755 "$1"', 'sh', path], {
    input: `#!/bin/sh\n${text}\n`,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${path} could not be written: ${stderr}`, { cause: error });
  return path;
}
