import { writeFileSync } from 'node:fs';

/** Writes a shell script that can be run, and answers its path. */
export function writeScript(path: string, text: string): string {
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return path;
}
