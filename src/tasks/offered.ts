import { joinKey, type Json } from '#cluster';
import { taskKey, type TaskDefinition, type TaskName } from './definition.ts';

/**
 * Tasks that this node offers to run without a definition in the store: nodes that read the same definition, for example in
 * a file, offer the same task, and one of these runs it.
 */
export class OfferedTasks {
  readonly #offers = new Map<string, { readonly name: TaskName; readonly definition: TaskDefinition }>();

  get(name: TaskName): TaskDefinition | undefined {
    return this.#offers.get(taskKey(name))?.definition;
  }

  /** Names of the tasks of one kind in an application. */
  in(kind: string, vhost: string, app: string): TaskName[] {
    const folder = joinKey(kind, vhost, app);
    return Array.from(this.#offers.values(), ({ name }) => name).filter(
      (name) => joinKey(name.kind, name.vhost, name.app) === folder,
    );
  }

  /** @param version of the definition: another version is another task, as if the one before had been deleted */
  set(name: TaskName, spec: Json, version: string): void {
    const definition = { spec, persistent: true, stored: false, uid: `offered ${version}` };
    this.#offers.set(taskKey(name), { name, definition });
  }

  delete(name: TaskName): void {
    this.#offers.delete(taskKey(name));
  }
}
