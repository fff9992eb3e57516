import { createWriteStream, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import { serve } from '../program.ts';

const EVERY_MS = 500;

interface Files {
  readonly folder: string;
  readonly count: number;
  /** Of each file. */
  readonly kbit: number;
}

let files: WriteStream[] = [];
let timer: NodeJS.Timeout | undefined;

const commands = {
  /** Writes that much into each of some files, twice a second. */
  start({ folder, count, kbit }: Files): void {
    files = Array.from({ length: count }, (_, i) => createWriteStream(join(folder, `bare-${i}`)));
    const bytes = Buffer.alloc((kbit * EVERY_MS) / 8);
    timer = setInterval(() => {
      for (const file of files) file.write(bytes);
    }, EVERY_MS);
  },

  stop(_: undefined): void {
    clearInterval(timer);
    for (const file of files) file.destroy();
  },
};

/** Bare files of node:fs: as many bytes as recordings have, and nothing else. */
export type FileCommands = typeof commands;

serve(commands);
