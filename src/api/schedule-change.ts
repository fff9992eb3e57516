import { kilnError } from '../errors.ts';
import type { Document } from '../management/documents.ts';
import { readCalendarPrograms } from '../providers/scheduled/upload/calendar.ts';
import { readCsvPrograms } from '../providers/scheduled/upload/csv.ts';
import type { RawProgram } from '../providers/scheduled/upload/raw-program.ts';
import { UploadError } from '../providers/scheduled/upload/upload-error.ts';
import { objectOf } from './envelope.ts';

/** Forms of programs besides JSON, by media type. */
const UPLOADS: Readonly<Record<string, (text: string) => readonly RawProgram[]>> = {
  'text/calendar': (text) => readCalendarPrograms(text, Date.now()).programs,
  'text/csv': readCsvPrograms,
};

/** Media types that are no JSON. */
export const UPLOAD_TYPES = Object.keys(UPLOADS);

/**
 * What a body changes of a scheduled channel, in the form of JSON. Text of another form replaces its programs.
 * @param type of the content
 * @throws bodyNotObject, unchangeable, channelInvalid for text that is not of its form
 */
export function readScheduleChange(body: unknown, type = ''): Document {
  const read = typeof body === 'string' ? UPLOADS[mediaType(type)] : undefined;
  if (read === undefined) {
    const change = objectOf(body);
    // the same text whatever of it is to be changed (spec, "Scheduled channels")
    if (Object.hasOwn(change, 'stream')) throw kilnError('unchangeable', 'name');
    return change;
  }
  try {
    return { programs: read(body as string) };
  } catch (error) {
    if (error instanceof UploadError) throw kilnError('channelInvalid', error.message);
    throw error;
  }
}

/** Of a `Content-Type`, without its parameters. */
export function mediaType(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase();
}
