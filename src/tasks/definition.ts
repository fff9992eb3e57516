import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { joinKey, splitKey, type Json } from '#cluster';

/** What names a task in the whole cluster. */
export interface TaskName {
  /** Of the kind of tasks. */
  readonly kind: string;
  readonly vhost: string;
  readonly app: string;
  readonly id: string;
}

const Stored = Type.Object({
  spec: Type.Unknown(),
  persistent: Type.Boolean(),
  /** Its virtual host is stored, too: it ends with it. */
  stored: Type.Boolean(),
});

/** What is to be done, whoever does it. */
export interface TaskDefinition extends Omit<Static<typeof Stored>, 'spec'> {
  /** What the kind of tasks makes of it. */
  readonly spec: Json;
  /** It outlives its application's restarts. */
  readonly persistent: boolean;
}

/** Where definitions lie in the cluster's configuration: no virtual host has a name with `#`. */
const DEFINITIONS = joinKey('#task');
/** Under which the claims of all tasks lie. */
export const TASKS = 'task';

/** True for what is stored beside the virtual hosts. */
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

/** The task whose claim or definition a key is of; undefined for other keys. */
export function taskOfKey(key: string): TaskName | undefined {
  const [root, kind, vhost, app, id] = splitKey(key);
  if (root !== TASKS && root !== '#task') return undefined;
  if (kind === undefined || vhost === undefined || app === undefined || id === undefined) return undefined;
  return { kind, vhost, app, id };
}

/** Values that were checked already: they never change. */
const known = new WeakMap<object, TaskDefinition | undefined>();

/** undefined for what a node of another version may have left. */
export function readDefinition(value: Json | undefined): TaskDefinition | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!known.has(value))
    known.set(value, Value.Check(Stored, value) ? (value as unknown as TaskDefinition) : undefined);
  return known.get(value);
}
