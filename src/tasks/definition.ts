import { isDeepStrictEqual } from 'node:util';
import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { joinKey, splitKey, type Json } from '#cluster';
import { ProgressSchema, type TaskProgress } from './progress.ts';

/** The name of a task in the whole cluster. */
export interface TaskName {
  /** Name of its kind. */
  readonly kind: string;
  readonly vhost: string;
  readonly app: string;
  readonly id: string;
}

/** Schema of a task's name in calls between nodes. */
export const TaskNameSchema = Type.Object({
  kind: Type.String(),
  vhost: Type.String(),
  app: Type.String(),
  id: Type.String(),
});

/** Origin of a task that the configuration asks for. */
const Origin = Type.Object({
  /** Identifies the entry: another one when its content changes. */
  entry: Type.String(),
  /** Incarnation of the node that has the stream which the task is for: no other node runs it. */
  node: Type.String(),
  /** Name of the output stream, and its number there: another stream of that name has a task of its own. */
  output: Type.String(),
  number: Type.Number(),
});
export type TaskOrigin = Static<typeof Origin>;

const Stored = Type.Object({
  spec: Type.Unknown(),
  persistent: Type.Boolean(),
  /** Whether its virtual host is stored, too: the task ends with it. */
  stored: Type.Boolean(),
  /** Unique for each task, also under the same name. Older versions have neither this nor the fields below. */
  uid: Type.Optional(Type.String()),
  /** Generation of its application when it was created. */
  generation: Type.Optional(Type.Number()),
  /** Set for a task that the configuration asks for: it ends with its stream. */
  origin: Type.Optional(Origin),
  progress: Type.Optional(ProgressSchema),
});

/** Definition of a task, the same for every node. */
export interface TaskDefinition extends Omit<Static<typeof Stored>, 'spec' | 'progress'> {
  /** The data of the kind of task. */
  readonly spec: Json;
  /** Whether it outlives its application's restarts. */
  readonly persistent: boolean;
  /** As saved by the last owner: the claim may have newer progress. */
  readonly progress?: TaskProgress;
}

/** Path of all definitions in the cluster's configuration: no virtual host has a name with `#`. */
const DEFINITIONS = joinKey('#task');
/** Path of the claims of all tasks. */
export const TASKS = 'task';

/** Whether a path leads to something other than virtual hosts. */
export function isBesideVhosts([first = '']: readonly string[]): boolean {
  return first.startsWith('#');
}

/** Key of a task's claim. */
export function taskKey({ kind, vhost, app, id }: TaskName): string {
  return joinKey(TASKS, kind, vhost, app, id);
}

/** Key of a task's definition. */
export function definitionKey({ kind, vhost, app, id }: TaskName): string {
  return `${DEFINITIONS}/${joinKey(kind, vhost, app, id)}`;
}

/** Key below which the definitions of a kind in a virtual host, or in one application of it, are. */
export function definitionsKey(kind: string, vhost: string, app?: string): string {
  return `${DEFINITIONS}/${joinKey(kind, vhost, ...(app === undefined ? [] : [app]))}`;
}

/** Name of the task that a claim or definition with this key belongs to; undefined for other keys. */
export function taskOfKey(key: string): TaskName | undefined {
  const [root, kind, vhost, app, id] = splitKey(key);
  if (root !== TASKS && root !== '#task') return undefined;
  if (kind === undefined || vhost === undefined || app === undefined || id === undefined) return undefined;
  return { kind, vhost, app, id };
}

/** Values that were checked already; they are immutable. */
const known = new WeakMap<object, TaskDefinition | undefined>();

/** Whether both are the same except for their progress and the node that has their stream. */
export function isSameTask(one: TaskDefinition, other: TaskDefinition): boolean {
  return one === other || isDeepStrictEqual(essence(one), essence(other));
}

/** Whether both are the same task, which may have to do something else. */
export function isSameButSpec(one: TaskDefinition, other: TaskDefinition): boolean {
  return isSameTask({ ...one, spec: null }, { ...other, spec: null });
}

function essence({ progress: _, origin: __, ...rest }: TaskDefinition): object {
  return rest;
}

/** Checks a stored definition. @returns undefined for one that a node of another version may have left */
export function readDefinition(value: Json | undefined): TaskDefinition | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!known.has(value))
    known.set(value, Value.Check(Stored, value) ? (value as unknown as TaskDefinition) : undefined);
  return known.get(value);
}
