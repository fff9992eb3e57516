import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { idOf } from '../../../src/recording/finished/entry.ts';
import { RecordedIndex } from '../../../src/recording/finished/recorded-index.ts';
import { Recordings } from '../../../src/recording/finished/recordings.ts';
import { appendInfo } from '../../../src/recording/info-file.ts';
import type { FinishedFile } from '../../../src/recording/journal.ts';

const NOT_BUSY = {
  journal: { has: async () => false },
  deliveries: { isUploading: async () => false },
  isDumping: (_folder: string) => false,
};
const log = pino({ level: 'silent' });

/** Finished files with an index in a folder. */
export function openRecordings(folder: string, busy: Partial<typeof NOT_BUSY> = {}): Recordings {
  const index = new RecordedIndex({ folder: join(folder, 'recorded'), log });
  return new Recordings({ index, ...NOT_BUSY, ...busy, log });
}

/** A node with finished files below a folder of its own. */
export function openFinished(t: Pick<ExecutionContext, 'teardown'>) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-finished-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const root = join(folder, 'root');
  let lines = '';
  const noted = pino({ level: 'warn' }, { write: (line) => void (lines += line) });
  const index = new RecordedIndex({ folder: join(folder, 'recorded'), log: noted });
  let count = 0;
  return {
    folder,
    root,
    index,
    log: () => lines,
    /** Records a file of a second. @returns its id */
    finish: async (
      startTime: number,
      more: Partial<FinishedFile> = {},
      content: string | Buffer = 'media',
    ): Promise<string> => {
      const path = more.pathBelow ?? `${count}.ts`;
      const file: FinishedFile = {
        temporary: join(root, `tmp_${(count++).toString(16).padStart(32, '0')}`),
        ...{ root, file: path, info: 'info.xml', transactionId: 'T'.repeat(16), id: 'task' },
        ...{ vhost: 'v', app: 'a', stream: 's', source: 's', sequence: count - 1, createdTime: startTime, startTime },
        ...{ recordBytes: 5, recordTime: 1000, lastSequence: false, finishTime: startTime + 1000 },
        ...{ filePath: join(root, path), pathBelow: path },
        ...more,
      };
      mkdirSync(dirname(file.filePath), { recursive: true });
      writeFileSync(file.filePath, content);
      await appendInfo(join(root, 'info.xml'), file);
      await index.add(file);
      return idOf(startTime, file.temporary);
    },
  };
}
