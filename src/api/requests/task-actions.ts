import Type from 'typebox';
import type { Document } from '../../management/documents.ts';
import { demandParameters, readTaskId } from '../../tasks/request.ts';
import { objectOf } from '../envelope.ts';

/** Task of an action. */
export const TaskId = Type.Object({ id: Type.String() });
/** Task of a list; all tasks if none is named. */
export const TaskChoice = Type.Object({ id: Type.Optional(Type.String()) });

/** Stream of a task in bodies; `tracks` is another word for `trackIds`. */
export const TaskStreamBody = Type.Object({
  name: Type.String(),
  trackIds: Type.Optional(Type.Array(Type.Integer())),
  tracks: Type.Optional(Type.Array(Type.Integer(), { description: 'another word for trackIds' })),
  variantNames: Type.Optional(Type.Array(Type.String())),
});

/**
 * Body of an action.
 * @param required paths of elements that must be there, such as `stream.name`
 * @throws bodyNotObject, taskInvalid
 */
export function creationOf(body: unknown, required: readonly string[]): Document {
  const given = objectOf(body);
  demandParameters(given, required);
  return given;
}

/**
 * Id in the body of an action such as `:records` or `:stopPush`; undefined for a call by GET, which has no body.
 * @throws bodyNotObject, taskInvalid
 */
export function namedTask(body: unknown): string | undefined {
  const given = objectOf(body ?? {});
  return given.id === undefined || given.id === '' ? undefined : readTaskId(given);
}
