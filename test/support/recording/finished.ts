import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { DerivedFiles } from '../../../src/recording/finished/derived-files.ts';
import { idOf } from '../../../src/recording/finished/entry.ts';
import { RecordedIndex, type DumpedFolder } from '../../../src/recording/finished/recorded-index.ts';
import { Recordings } from '../../../src/recording/finished/recordings.ts';
import { appendInfo } from '../../../src/recording/info-file.ts';
import type { FinishedFile } from '../../../src/recording/journal.ts';

export const APP = { vhost: 'v', app: 'a' };
export const NOON = Date.UTC(2026, 2, 5, 12);

/** Media playlist of a dump. */
export const DUMPED_LIST = '#EXTM3U\n#EXT-X-MAP:URI="init_x.m4s"\n#EXTINF:2,\nseg_0.m4s\n#EXTINF:2,\nseg_1.m4s\n';

const NOT_BUSY = {
  journal: { has: async () => false },
  deliveries: { isUploading: async () => false },
  isDumping: (_folder: string) => false,
};
const log = pino({ level: 'silent' });

/** Finished files with an index in a folder. */
export function openRecordings(folder: string, busy: Partial<typeof NOT_BUSY> = {}): Recordings {
  const index = new RecordedIndex({ folder: join(folder, 'recorded'), log });
  const derived = new DerivedFiles(join(folder, 'playback'));
  return new Recordings({ index, derived, ...NOT_BUSY, ...busy, log });
}

/** A node with finished files below a folder of its own. */
export function openFinished(t: Pick<ExecutionContext, 'teardown'>) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-finished-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const root = join(folder, 'root');
  const dumps = join(realpathSync(folder), 'dumps');
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
        ...APP,
        ...{ stream: 's', source: 's', sequence: count - 1, createdTime: startTime, startTime },
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
    /** Parent of the folders of dumps. */
    dumps,
    /** Dumps two segments of two seconds, of 18 bytes, to a folder of its own. */
    dump: async (name: string, startTime = NOON, more: Partial<DumpedFolder> = {}): Promise<DumpedFolder> => {
      const place = join(dumps, name);
      mkdirSync(place, { recursive: true });
      for (const file of ['init_x.m4s', 'seg_0.m4s', 'seg_1.m4s']) writeFileSync(join(place, file), file);
      writeFileSync(join(place, 'chunklist.m3u8'), DUMPED_LIST);
      writeFileSync(join(place, 'llhls.m3u8'), '#EXTM3U\nchunklist.m3u8\n');
      const infoFile = join(dumps, `${name}.xml`);
      writeFileSync(infoFile, '<HLSDumpInfo/>');
      const dump = {
        ...APP,
        ...{ folder: place, id: 'd', stream: 's', source: 's', userData: 'mine', container: 'fMP4', infoFile },
        ...{ lists: ['chunklist.m3u8', 'none.m3u8'], masters: ['llhls.m3u8'], bytes: 18 },
        ...{ duration: 4000, startTime, finishTime: startTime + 4000 },
        ...more,
      };
      await index.addDump(dump);
      return dump;
    },
  };
}
