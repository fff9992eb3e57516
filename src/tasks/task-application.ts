import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError } from '../errors.ts';
import type { TaskName } from './definition.ts';

/** The application of a task, made of its template where need be. @returns undefined when this node has none */
export function taskApplication(
  registry: Registry,
  { vhost, app }: Pick<TaskName, 'vhost' | 'app'>,
): Application | undefined {
  try {
    return registry.vhosts.get(vhost)?.demandApplication(app);
  } catch (error) {
    if (error instanceof KilnError) return undefined;
    throw error;
  }
}
