import Type from 'typebox';
import { kilnError } from '../../errors.ts';
import type { Document } from '../../management/documents.ts';
import type { DumpRequest } from '../../publishers/hls/dump/stream-dumps.ts';
import { objectOf } from '../envelope.ts';
import { readTaskId, readText } from '../../tasks/request.ts';

const MAX_PLAYLISTS = 64;

/** Body in the description of the API; the functions below check it, with texts of their own. */
export const DumpCreation = Type.Object({
  outputStreamName: Type.String(),
  id: Type.String({ description: 'unique for the output stream' }),
  outputPath: Type.String({ description: 'an absolute path; it is created if it does not exist' }),
  playlist: Type.Optional(Type.Array(Type.String(), { description: 'file names of master playlists; all by default' })),
  infoFile: Type.Optional(Type.String({ description: 'an absolute path where no file exists' })),
  userData: Type.Optional(Type.String({ description: 'is written to the info file' })),
});
export const DumpChoice = Type.Object({ outputStreamName: Type.String(), id: Type.Optional(Type.String()) });
export const KeyRotation = Type.Object({});
export const HlsConclusion = Type.Object({
  urgent: Type.Optional(Type.Boolean({ description: 'now, not at the end of the segments that are being made' })),
});

/** @throws bodyNotObject, taskInvalid, with the texts of OvenMediaEngine (docs/compatibility.md#recordings-pushes-dumps) */
export function readDumpRequest(given: unknown): { readonly output: string; readonly request: DumpRequest } {
  const body = objectOf(given);
  const output = readText(body, 'outputStreamName');
  const outputPath = readText(body, 'outputPath');
  if (output === undefined || outputPath === undefined || (body.id ?? '') === '')
    throw kilnError('taskInvalid', 'id, outputStreamName and outputPath are required');
  const infoFile = readText(body, 'infoFile');
  const userData = readText(body, 'userData');
  const request = {
    id: readTaskId(body),
    outputPath,
    playlist: readPlaylists(body),
    ...(infoFile !== undefined && { infoFile }),
    ...(userData !== undefined && { userData }),
  };
  return { output, request };
}

/** Dumps for :stopHlsDump and :hlsDumps: the one of that id, or all. @throws bodyNotObject, taskInvalid */
export function readDumpChoice(given: unknown): { readonly output: string; readonly id: string | undefined } {
  const body = objectOf(given ?? {});
  const output = readText(body, 'outputStreamName');
  if (output === undefined) throw kilnError('taskInvalid', 'outputStreamName is required');
  return { output, id: (body.id ?? '') === '' ? undefined : readTaskId(body) };
}

/** @returns whether the conclusion is urgent @throws bodyNotObject, taskInvalid */
export function readConclusion(given: unknown): boolean {
  const { urgent = false } = objectOf(given ?? {});
  if (typeof urgent !== 'boolean') throw kilnError('taskInvalid', '[urgent] must be a boolean');
  return urgent;
}

function readPlaylists({ playlist }: Document): string[] {
  if (playlist === undefined || playlist === null) return [];
  const isList = Array.isArray(playlist) && playlist.every((file) => typeof file === 'string' && file !== '');
  if (!isList || playlist.length > MAX_PLAYLISTS)
    throw kilnError('taskInvalid', `[playlist] must be an array of at most ${MAX_PLAYLISTS} file names`);
  return playlist as string[];
}
