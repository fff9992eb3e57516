import { BlockList } from 'node:net';
import type { ServerConfig } from './model.ts';

type Networks = NonNullable<ServerConfig['modules']['proxyProtocol']>['networks'];

/** The addresses of the networks that Server.xml names; undefined where it has no such list. */
export function blockList(networks: Networks): BlockList;
export function blockList(networks: Networks | undefined): BlockList | undefined;
export function blockList(networks: Networks | undefined): BlockList | undefined {
  if (networks === undefined) return undefined;
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  return list;
}
