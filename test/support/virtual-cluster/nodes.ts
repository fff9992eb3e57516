import type { ExecutionContext } from 'ava';
import type { ClaimOptions, Cluster, Lease } from '#cluster';
import { Lua } from './lua.ts';
import { openNode } from './node.ts';
import { SCRIPT_NAMES } from './replaced.ts';
import type { Process } from './scheduler.ts';
import { World } from './world.ts';

const CONTINUE: ClaimOptions = { silence: 'continue', keepMs: 60_000 };

/** A node of a world in virtual time. */
export interface VirtualNode {
  readonly process: Process;
  readonly cluster: Cluster;
}

/** A world in virtual time until the test ends, and what nodes do in it. Tests that have one are serial. */
export async function openWorld(t: ExecutionContext, seed = 1) {
  const scripts: { readonly node: string; readonly name: string }[] = [];
  /** Called when a node has had Redis run a script. */
  const onScript = new Set<(node: string, name: string) => void>();
  const world = new World({
    lua: await Lua.start(),
    seed,
    onScript: ({ name: node }, hash) => {
      const name = SCRIPT_NAMES.get(hash) ?? hash;
      scripts.push({ node, name });
      for (const hear of onScript) hear(node, name);
    },
  });
  t.teardown(world.scheduler.begin());

  const run = <T>({ process }: VirtualNode, step: () => Promise<T>): Promise<T> => world.until(process.enter(step));

  /** @param id unless it is that of the host */
  const start = async (host: string, id = host): Promise<VirtualNode> => {
    const process = world.process(host);
    return { process, cluster: await world.until(openNode(process, { id })) };
  };

  /** @returns undefined when another has it */
  const claim = async (
    node: VirtualNode,
    key: string,
    options: Partial<ClaimOptions> = {},
  ): Promise<Lease | undefined> => {
    const granted = await run(node, () => node.cluster.claim(key, null, { ...CONTINUE, ...options }));
    return 'lease' in granted ? granted.lease : undefined;
  };

  const release = async (lease: Lease | undefined, node: VirtualNode): Promise<void> => {
    if (lease !== undefined) await run(node, () => lease.release());
  };

  const listed = async (node: VirtualNode): Promise<string[]> => [
    ...(await run(node, () => node.cluster.list(''))).keys(),
  ];

  /** Resolves when Redis has run a script for a node. */
  const afterScript = (node: string, name: string): Promise<void> =>
    world.until(
      new Promise((resolve) => {
        const hear = (of: string, script: string): void => {
          if (of === node && script === name && onScript.delete(hear)) resolve();
        };
        onScript.add(hear);
      }),
    );

  /** Redis is another run, with what it had at some time. */
  const restart = (data = world.redis.dump()): void => {
    world.redis.process.kill();
    world.redis.run(data);
  };

  return { world, scripts, run, start, claim, release, listed, afterScript, restart };
}
