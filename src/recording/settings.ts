import { resolve } from 'node:path';
import type { ApplicationConfig } from '../config/model.ts';
import { partsBelow } from '../lib/files/paths.ts';
import { expandPath, type PathValues } from './macros.ts';
import type { RecordSpec } from './spec.ts';

const DEFAULT_FILE = '${TransactionId}_${VirtualHost}_${Application}_${Stream}_${StartTime:YYYYMMDDhhmmss}.ts';
const DEFAULT_INFO = '${TransactionId}_${VirtualHost}_${Application}_${Stream}.xml';

export interface RecordPaths {
  /** Nothing is written outside it. */
  readonly root: string;
  /** Templates below the root, which they may begin with. */
  readonly file: string;
  readonly info: string;
  /** Steps of the application for finished files; undefined: none. */
  readonly delivery?: { readonly announced: boolean; readonly uploaded: boolean };
}

/**
 * Paths of a task's request, else of the application.
 * @param folder base of a relative RootPath, and of `records`, where there is none
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
