import Type from 'typebox';
import {
  atLeastOne,
  choice,
  contained,
  flag,
  ignored,
  optional,
  parsed,
  repeated,
  section,
  text,
  type Fail,
} from '../blocks.ts';
import { parseListenAddress } from '../values.ts';
import { unique } from '../rules.ts';
import { Alert } from './alert.ts';
import { Bind } from './bind.ts';
import { Cluster } from './cluster.ts';
import { Modules } from './modules.ts';
import { crossDomains, endpoint, hostNames, tls } from './shared.ts';
import { VirtualHost } from './vhost.ts';

const Managers = optional({
  host: Type.Object({ names: hostNames(), tls: tls() }),
  api: section({
    /** Credentials of clients, as Basic authentication has them. */
    accessToken: text({ default: '' }),
    crossDomains: crossDomains(),
    /** File with a sealed line for each call that may have changed something. Absent: none. */
    auditLog: optional({ path: text(), key: text() }),
    storage: section({ enabled: flag(true), path: text({ default: 'conf/api_data' }) }),
  }),
});

const EVERY = { ipv4: '*', ipv6: '::' } as const;

/** Rejects a wildcard address beside others of its family: it listens on all of them. */
function separate(addresses: readonly string[], fail: Fail): void {
  const every = (address: string) => EVERY[address.includes(':') ? 'ipv6' : 'ipv4'];
  const plain = addresses.map((address) => (address === '0.0.0.0' ? EVERY.ipv4 : address));
  plain.forEach((address, index) => {
    const other = plain.findIndex((one, at) => (one === address ? at < index : one === every(address)));
    if (other >= 0) fail([index], `"${addresses[index]}" is already covered by "${addresses[other]}"`);
  });
}

export const Server = Type.Object({
  name: text({ default: 'Kiln' }),
  type: choice(['origin', 'edge']),
  ip: atLeastOne(repeated(parsed('*, :: or an IP address', parseListenAddress), undefined, { rule: separate })),
  stunServer: Type.Optional(endpoint()),
  privacyProtection: flag(false),
  bind: Bind,
  modules: Modules,
  managers: Managers,
  alert: Alert,
  analytics: ignored(),
  defaults: section({ crossDomains: crossDomains() }),
  virtualHosts: contained(VirtualHost, 'VirtualHost', {
    rule: (vhosts: { name: string }[], fail: Fail) => unique(vhosts, 'name', [], fail),
  }),
  cluster: Cluster,
});
