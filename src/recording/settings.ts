import { resolve } from 'node:path';
import type { ApplicationConfig } from '../config/model.ts';
import { partsBelow } from '../lib/files/paths.ts';
import { expandPath, type PathValues } from './macros.ts';
import type { RecordSpec } from './spec.ts';

const DEFAULT_FILE = '${TransactionId}_${VirtualHost}_${Application}_${Stream}_${StartTime:YYYYMMDDhhmmss}.ts';
const DEFAULT_INFO = '${TransactionId}_${VirtualHost}_${Application}_${Stream}.xml';

/** Where the files of a recording go. */
export interface RecordPaths {
  /** Nothing is written outside it. */
  readonly root: string;
  /** Templates below the root, which they may begin with. */
  readonly file: string;
  readonly info: string;
  /** What the application does with finished files; undefined: nothing. */
  readonly delivery?: { readonly announced: boolean; readonly uploaded: boolean };
}

/**
 * What a task asks for, and else what the application says.
 * @param folder that a relative RootPath starts from, and that `records` is in, where there is none
 * @returns undefined where the application has no File publisher
 */
export function recordPaths(
  { publishers: { file } }: ApplicationConfig,
  { filePath, infoPath }: Pick<RecordSpec, 'filePath' | 'infoPath'>,
  folder: string,
): RecordPaths | undefined {
  if (file === undefined) return undefined;
  const root = resolve(folder, file.rootPath ?? 'records');
  const { webhook, upload } = file.record ?? {};
  const isDelivered = webhook !== undefined || upload !== undefined;
  return {
    root,
    file: filePath ?? file.filePath ?? DEFAULT_FILE,
    info: infoPath ?? file.infoPath ?? DEFAULT_INFO,
    ...(isDelivered && { delivery: { announced: webhook !== undefined, uploaded: upload !== undefined } }),
  };
}

/** @returns the parts of both paths below the root @throws PathError */
export function partsOf({ root, file, info }: RecordPaths, values: PathValues) {
  return { file: partsBelow(root, expandPath(file, values)), info: partsBelow(root, expandPath(info, values)) };
}
