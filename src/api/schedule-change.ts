import { kilnError } from '../errors.ts';
import type { Document } from '../management/documents.ts';
import { mediaType } from '../lib/media-type.ts';
import { readCalendarPrograms, type CalendarReading } from '../channels/scheduled/upload/calendar.ts';
import { readCsvPrograms } from '../channels/scheduled/upload/csv.ts';
import { UploadError } from '../channels/scheduled/upload/upload-error.ts';
import { objectOf } from './envelope.ts';

/** Forms of programs besides JSON, by media type. */
const UPLOADS: Readonly<Record<string, (text: string) => CalendarReading>> = {
  'text/calendar': (text) => readCalendarPrograms(text, Date.now()),
  'text/csv': (text) => ({ programs: readCsvPrograms(text), until: undefined }),
};

/** Media types that are no JSON. */
export const UPLOAD_TYPES = Object.keys(UPLOADS);

export interface ScheduleChange {
  /** In the form of JSON. */
  readonly change: Document;
  /** When the programs end that recurring events were made into: milliseconds since the epoch. */
  readonly until: number | undefined;
}

/**
 * What a body changes of a scheduled channel. Text of another form than JSON replaces its programs.
 * @param type of the content
 * @throws bodyNotObject, unchangeable, channelInvalid for text that is not of its form
 */
export function readScheduleChange(body: unknown, type = ''): ScheduleChange {
  const read = typeof body === 'string' ? UPLOADS[mediaType(type)] : undefined;
  if (read === undefined) {
    const change = objectOf(body);
    // the same text whatever of it is to be changed (docs/compatibility.md#channels)
    if (Object.hasOwn(change, 'stream')) throw kilnError('unchangeable', 'name');
    return { change, until: undefined };
  }
  try {
    const { programs, until } = read(body as string);
    return { change: { programs }, until };
  } catch (error) {
    if (error instanceof UploadError) throw kilnError('channelInvalid', error.message);
    throw error;
  }
}
