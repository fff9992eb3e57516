import test from 'ava';
import type { Kiln, KilnOptions } from './kiln.ts';
import { startNode, usedRedis, type ClusterOptions } from './nodes.ts';
import { Teardown } from '../programs/teardown.ts';

type NodesOf<Ids extends readonly string[]> = { readonly [At in keyof Ids]: Kiln };

/**
 * Nodes of one cluster for all tests of a file that leave them running: started before the first of its tests, gone after
 * the last. Tests that tell their own from what others do give their streams other names, or are serial.
 */
export function sharedNodes<const Ids extends readonly string[]>(
  ids: Ids,
  options: KilnOptions & ClusterOptions = {},
): () => NodesOf<Ids> {
  const undo = new Teardown();
  let nodes: readonly Kiln[] = [];
  test.before(async () => {
    const redis = await usedRedis(undo);
    nodes = await Promise.all(ids.map((id) => startNode(undo, redis, id, options)));
  });
  test.after.always(() => undo.run());
  return () => nodes as NodesOf<Ids>;
}
