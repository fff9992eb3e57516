import Type from 'typebox';
import type { Document } from '../management/documents.ts';
import { demandParameters, readTaskId } from '../tasks/request.ts';
import { objectOf } from './envelope.ts';

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

/**
 * The body of an action, in which what `required` names is there: paths such as `stream.name`.
 * @throws bodyNotObject, taskInvalid
 */
export function creationOf(body: unknown, required: readonly string[]): Document {
  const given = objectOf(body);
  demandParameters(given, required);
  return given;
}

/**
 * The id that an action such as `:records` or `:stopPush` names, in its body or, called by GET, nowhere.
 * @throws bodyNotObject, taskInvalid
 */
export function namedTask(body: unknown): string | undefined {
  const given = objectOf(body ?? {});
  return given.id === undefined || given.id === '' ? undefined : readTaskId(given);
}
