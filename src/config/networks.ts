import { BlockList } from 'node:net';
import type { Network } from './values.ts';

/** The addresses of networks in CIDR notation; undefined where there is no such list. */
export function blockList(networks: readonly Network[]): BlockList;
export function blockList(networks: readonly Network[] | undefined): BlockList | undefined;
export function blockList(networks: readonly Network[] | undefined): BlockList | undefined {
  if (networks === undefined) return undefined;
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  return list;
}
