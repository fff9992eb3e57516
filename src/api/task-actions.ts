import Type, { type Static } from 'typebox';
import { kilnError } from '../errors.ts';
import { isDocument, type Document } from '../management/documents.ts';
import type { TrackChoice } from '../tasks/track-selection.ts';
import { objectOf } from './envelope.ts';

const MAX_ID = 255;
const MAX_TRACKS = 64;

/** The task that an action is about. */
export const TaskId = Type.Object({ id: Type.String() });
/** The task that a list is to have; all of them if none is named. */
export const TaskChoice = Type.Object({ id: Type.Optional(Type.String()) });

/** The stream of a task in bodies: `tracks` is another word for `trackIds`. */
export const TaskStreamBody = Type.Object({
  name: Type.String(),
  trackIds: Type.Optional(Type.Array(Type.Integer())),
  tracks: Type.Optional(Type.Array(Type.Integer(), { description: 'another word for trackIds' })),
  variantNames: Type.Optional(Type.Array(Type.String())),
});

/** The stream of a task in answers. */
export const TaskStream = Type.Object({
  name: Type.String(),
  trackIds: Type.Array(Type.Integer()),
  variantNames: Type.Array(Type.String()),
});

/** An output stream, which need not exist yet, and which of its tracks a task takes. */
export type TaskStream = Static<typeof TaskStream> & TrackChoice;

/**
 * The body of an action that creates a task, in which what `required` names is there: paths such as `stream.name`.
 * @throws bodyNotObject, taskInvalid
 */
export function creationOf(body: unknown, required: readonly string[]): Document {
  const given = objectOf(body);
  const missing = required.filter((path) => {
    let value: unknown = given;
    for (const key of path.split('.')) value = isDocument(value) ? value[key] : undefined;
    return value === undefined || value === null || value === '';
  });
  if (missing.length > 0) throw kilnError('taskInvalid', `There is no required parameter [ ${missing.join(' ')}]`);
  return given;
}

/** @throws taskInvalid */
export function readTaskId({ id }: Document): string {
  if (typeof id !== 'string' || id === '') throw kilnError('taskInvalid', '[id] must be a string');
  if (id.length > MAX_ID || /\p{Cc}|\p{Cs}/u.test(id))
    throw kilnError('taskInvalid', `[id] must have at most ${MAX_ID} characters, and no control characters`);
  return id;
}

/**
 * The id that an action such as `:records` or `:stopPush` names, in its body or, called by GET, nowhere.
 * @throws bodyNotObject, taskInvalid
 */
export function namedTask(body: unknown): string | undefined {
  const given = objectOf(body ?? {});
  return given.id === undefined || given.id === '' ? undefined : readTaskId(given);
}

/** @throws taskInvalid */
export function readTaskStream({ stream }: Document): TaskStream {
  const { name, tracks, trackIds = tracks ?? [], variantNames = [] } = stream as Document;
  if (typeof name !== 'string') throw kilnError('taskInvalid', '[stream.name] must be a string');
  if (!isListOf(trackIds, (id): id is number => Number.isSafeInteger(id)))
    throw kilnError('taskInvalid', '[stream.trackIds] must be an array of integers');
  if (!isListOf(variantNames, (one): one is string => typeof one === 'string'))
    throw kilnError('taskInvalid', '[stream.variantNames] must be an array of strings');
  if (trackIds.length > MAX_TRACKS || variantNames.length > MAX_TRACKS)
    throw kilnError('taskInvalid', `[stream] must name at most ${MAX_TRACKS} tracks`);
  return { name, trackIds, variantNames };
}

/** A text of the body. @throws taskInvalid */
export function readText(body: Document, key: string): string | undefined {
  const value = body[key];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw kilnError('taskInvalid', `[${key}] must be a string`);
  return value;
}

function isListOf<T>(value: unknown, is: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(is);
}
