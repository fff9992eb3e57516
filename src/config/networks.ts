import { BlockList } from 'node:net';
import type { Network } from './values.ts';

/** Addresses of networks in CIDR notation; undefined for no list. */
export function blockList(networks: readonly Network[]): BlockList;
export function blockList(networks: readonly Network[] | undefined): BlockList | undefined;
export function blockList(networks: readonly Network[] | undefined): BlockList | undefined {
  if (networks === undefined) return undefined;
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  return list;
}
