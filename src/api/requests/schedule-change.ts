import { kilnError } from '../../errors.ts';
import type { Document } from '../../management/documents.ts';
import { mediaType } from '../../lib/media-type.ts';
import { readCalendarPrograms, type CalendarReading } from '../../channels/scheduled/upload/calendar.ts';
import { readCsvPrograms } from '../../channels/scheduled/upload/csv.ts';
import { UploadError } from '../../channels/scheduled/upload/upload-error.ts';
import { objectOf } from '../envelope.ts';

/** Formats of programs besides JSON, by media type. */
const UPLOADS: Readonly<Record<string, (text: string) => CalendarReading>> = {
  'text/calendar': (text) => readCalendarPrograms(text, Date.now()),
  'text/csv': (text) => ({ programs: readCsvPrograms(text), until: undefined }),
};

export const UPLOAD_TYPES = Object.keys(UPLOADS);

export interface ScheduleChange {
  /** Change as a JSON document. */
  readonly change: Document;
  /** End of the programs that recurring events were expanded into, in milliseconds since the epoch. */
  readonly until: number | undefined;
}

/**
 * Reads a change of a scheduled channel from a body. Text of another format than JSON replaces its programs.
 * @param type media type of the body
 * @throws bodyNotObject, unchangeable, channelInvalid for text that does not have its format
 */
export function readScheduleChange(body: unknown, type = ''): ScheduleChange {
  const read = typeof body === 'string' ? UPLOADS[mediaType(type)] : undefined;
  if (read === undefined) {
    const change = objectOf(body);
    // the same text for any change of it (docs/compatibility.md#channels)
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
