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

/** Store of the cluster: one Redis, one that sentinels monitor, or a Redis Cluster. */
const Redis = Type.Object(
  {
    url: Type.Optional(parsed('a redis:// or rediss:// URL', (given) => parseUrl(given, ['redis', 'rediss']))),
    sentinels: contained(endpoint(), 'Sentinel'),
    masterName: text({ default: 'mymaster' }),
    cluster: contained(endpoint(), 'Endpoint'),
    /** ACL user, unless the URL names one. A password without a user is that of `default`. */
    user: text({ default: '' }),
    password: text({ default: '' }),
    /** Credentials that the sentinels themselves require. */
    sentinelUser: text({ default: '' }),
    sentinelPassword: text({ default: '' }),
    /** TLS, to sentinels too. Without files: the well-known authorities, no certificate of this node. */
    tls: optional({ caCertPath: caCertPath(), certPath: Type.Optional(text()), keyPath: Type.Optional(text()) }),
  },
  { rule: checkRedis },
);

const Node = Type.Object({
  id: text(),
  advertiseAddress: text(),
  port: portOf('tcp'),
  /** TLS between nodes: this node's certificate, and the authority of the certificates of all nodes. */
  tls: optional({ ...tlsFiles(), caCertPath: caCertPath() }),
  /** Milliseconds that a draining node waits for its streams to leave. */
  drainTimeout: integer(30_000, { max: 86_400_000 }),
  /** URL by which clients reach this node itself: full nodes redirect viewers there. */
  publicUrl: Type.Optional(
    ifSet(parsed('an http or https URL of a host alone, such as https://node-1.example.com:3334', parseOrigin)),
  ),
  /** Load from which on the node counts as full; 0: no limit. */
  limits: section({
    /** Percent of CPU, or of the event loop. */
    load: integer(90, { max: 100 }),
    /** Bits per second sent. */
    bitrate: integer(0),
    viewers: integer(0),
  }),
  /** Port on which HAProxy asks for the share of new clients that this node can serve. */
  agentCheckPort: Type.Optional(ifSet(portOf('tcp'))),
});

/** Several nodes as one server. Absent: this node runs alone. */
export const Cluster = optional({
  name: text({ default: 'kiln' }),
  /** Secret that all nodes share: it authenticates calls between them. */
  secret: text(),
  /** Previous secret, known to the nodes that were not yet restarted with the new one. */
  previousSecret: Type.Optional(text()),
  redis: Redis,
  /** Number of other nodes that one node feeds with a stream: further nodes get it from those. The same on all nodes. */
  relayFanOut: ifSet(integer(8, { min: 1, max: 64 })),
  node: Node,
});
