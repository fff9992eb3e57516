import { kilnError } from '../errors.ts';
import { partsBelow, PathError } from '../lib/files/paths.ts';
import { expandPath, type PathValues } from './macros.ts';
import { partsOf, type RecordPaths } from './settings.ts';

/**
 * Expands both paths of a recording as of now, relative to the root.
 * @param prefix prefix of the keys of uploads
 * @throws taskInvalid for a path that leads out of the root or cannot be a file's, and for a key that leads out of
 * its bucket
 */
export function checkedParts(
  paths: RecordPaths,
  names: Pick<PathValues, 'id' | 'vhost' | 'app' | 'stream' | 'source'>,
  prefix = '',
) {
  const now = new Date();
  const values = { ...names, transactionId: '0'.repeat(16), sequence: 0, start: now, end: now };
  try {
    partsBelow('/', `${expandPath(prefix, values)}file`);
    return partsOf(paths, values);
  } catch (error) {
    if (error instanceof PathError) throw kilnError('taskInvalid', error.message);
    throw error;
  }
}
