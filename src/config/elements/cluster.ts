import Type from 'typebox';
import { contained, ifSet, integer, optional, parsed, section, text, type Fail } from '../blocks.ts';
import { parseOrigin, parseUrl } from '../values.ts';
import { endpoint, portOf, tlsFiles } from './shared.ts';

const caCertPath = () => Type.Optional(text({ xml: 'CACertPath' }));

interface RedisElement {
  readonly url?: string;
  readonly sentinels: readonly unknown[];
  readonly cluster: readonly unknown[];
  readonly tls?: { readonly certPath?: string; readonly keyPath?: string };
}

function checkRedis({ url, sentinels, cluster, tls }: RedisElement, fail: Fail): void {
  const ways = [url !== undefined, sentinels.length > 0, cluster.length > 0].filter(Boolean).length;
  if (ways === 0) fail([], 'needs Url, Sentinels or Cluster');
  if (ways > 1) fail([], 'allows only one of Url, Sentinels and Cluster');
  if (tls === undefined) return;
  if (url !== undefined && new URL(url).protocol === 'redis:') fail(['tls'], 'needs a Url that begins with rediss://');
  if ((tls.certPath === undefined) !== (tls.keyPath === undefined)) {
    fail(['tls'], 'needs both CertPath and KeyPath, or neither');
  }
}

/** Where the nodes meet: one Redis, what sentinels watch over, or a Redis Cluster. */
const Redis = Type.Object(
  {
    url: Type.Optional(parsed('a redis:// or rediss:// URL', (given) => parseUrl(given, ['redis', 'rediss']))),
    sentinels: contained(endpoint(), 'Sentinel'),
    /** Name of the master that the sentinels watch. */
    masterName: text({ default: 'mymaster' }),
    /** Some nodes of a Redis Cluster. */
    cluster: contained(endpoint(), 'Endpoint'),
    /** An ACL user, unless the URL names one. A password without a user is that of `default`. */
    user: text({ default: '' }),
    password: text({ default: '' }),
    /** What the sentinels themselves ask for. */
    sentinelUser: text({ default: '' }),
    sentinelPassword: text({ default: '' }),
    /** TLS, to sentinels too. Without files: the known authorities, no certificate of this node. */
    tls: optional({ caCertPath: caCertPath(), certPath: Type.Optional(text()), keyPath: Type.Optional(text()) }),
  },
  { rule: checkRedis },
);

const Node = Type.Object({
  id: text(),
  advertiseAddress: text(),
  port: portOf('tcp'),
  /** TLS between nodes: this node's certificate, and who signs those of all. */
  tls: optional({ ...tlsFiles(), caCertPath: caCertPath() }),
  /** Milliseconds that a node which was told to stop waits for its streams to leave. */
  drainTimeout: integer(30_000, { max: 86_400_000 }),
  /** Where clients reach this node itself over HTTP: full nodes send viewers there. */
  publicUrl: Type.Optional(
    ifSet(parsed('an http or https URL of a host alone, such as https://node-1.example.com:3334', parseOrigin)),
  ),
  /** From which on it is full; 0: there is no such limit. */
  limits: section({
    /** Percent of CPU, or of the event loop. */
    load: integer(90, { max: 100 }),
    /** Bits per second sent. */
    bitrate: integer(0),
    /** Sessions of viewers. */
    viewers: integer(0),
  }),
  /** Where HAProxy asks how much this node can take. */
  agentCheckPort: Type.Optional(ifSet(portOf('tcp'))),
});

/** Several nodes as one server. Absent: this node is alone. */
export const Cluster = optional({
  name: text({ default: 'kiln' }),
  /** Shared by all nodes; node-to-node calls are authenticated with it. */
  secret: text(),
  /** The secret before, which the nodes know that were not restarted with the new one yet. */
  previousSecret: Type.Optional(text()),
  redis: Redis,
  /** How many other nodes one node feeds with a stream: further ones get it from those. The same on all nodes. */
  relayFanOut: ifSet(integer(8, { min: 1, max: 64 })),
  node: Node,
});
