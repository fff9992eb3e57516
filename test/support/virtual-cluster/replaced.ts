import { registerHooks } from 'node:module';
import type * as cluster from '../../../cluster/redis/cluster.ts';
import type * as scripts from '../../../cluster/redis/scripts.ts';

const of = (path: string): string => new URL(path, import.meta.url).href;
/** What stands in for the network and for chance in the modules of the cluster. */
const STAND_INS = new Map([
  [of('../../../cluster/redis/connection.ts'), of('connection.ts')],
  [of('../../../cluster/peer/port.ts'), of('port.ts')],
  [of('../../../cluster/identity.ts'), of('identity.ts')],
]);
const REACHABLE = of('../../../cluster/peer/reachable.ts');

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === 'node:net' && context.parentURL === REACHABLE)
      return { url: of('sockets.ts'), format: 'module-typescript', shortCircuit: true };
    const resolved = next(specifier, context);
    return { ...resolved, url: STAND_INS.get(resolved.url) ?? resolved.url };
  },
});

/**
 * The cluster as it is, in a world without network: to be called in a process of one. Nothing else of the thread has
 * imported it before.
 */
export const { openRedis } = (await import('../../../cluster/redis/cluster.ts')) as typeof cluster;

const { SCRIPTS } = (await import('../../../cluster/redis/scripts.ts')) as typeof scripts;

/** Names of the scripts by their hashes. */
export const SCRIPT_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries(SCRIPTS).map(([name, { hash }]) => [hash, name]),
);
