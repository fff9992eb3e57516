import type { ApplicationConfig } from '../config/model.ts';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError } from '../errors.ts';
import type { TaskName } from './definition.ts';

/** The application of a task on this node, created if its virtual host has a template for it; undefined when it cannot exist. */
export function applicationOf(registry: Registry, { vhost, app }: TaskName): Application | undefined {
  return found(() => registry.vhosts.get(vhost)?.demandApplication(app));
}

/** Configuration of that application, whether or not it was created. */
export function applicationConfigOf(registry: Registry, { vhost, app }: TaskName): ApplicationConfig | undefined {
  return found(() => registry.vhosts.get(vhost)?.demandConfig(app));
}

function found<T>(find: () => T | undefined): T | undefined {
  try {
    return find();
  } catch (error) {
    if (error instanceof KilnError) return undefined;
    throw error;
  }
}
