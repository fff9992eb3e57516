import Type from 'typebox';
import { flag, inert, integer, optional, repeated, section, text } from '../blocks.ts';
import { networks } from './shared.ts';

const enabled = (value: boolean) => section({ enable: flag(value) });

export const Modules = section({
  http2: enabled(true),
  llhls: enabled(true),
  p2p: section({ enable: flag(false), maxClientPeersPerHostPeer: integer(2) }),
  recovery: section({ enable: flag(false), deleteLazyStreamTimeout: integer(0) }),
  dynamicAppRemoval: enabled(false),
  etag: enabled(false),
  ertmp: enabled(false),
  whisper: optional({ preloadModel: repeated(Type.Object({ path: text(), devices: Type.Optional(text()) })) }),
  jemalloc: inert(section({ backgroundPurge: flag(true) })),
  taskPool: inert(section({ threadCount: integer(4, { min: 1 }), maxTasks: integer(128, { min: 1 }) })),
  /** Peers whose PROXY protocol header (v1, v2) on TCP ports is trusted. */
  proxyProtocol: optional({ networks: networks() }),
  /** Peers whose `X-Forwarded-For` is trusted. */
  forwardedFor: optional({ networks: networks() }),
  /** Networks that streams may be pulled from; absent: all but the cluster's own. */
  pull: optional({ networks: networks() }),
  /** Networks that streams may be pushed to; absent: all but the cluster's own. */
  push: optional({ networks: networks() }),
});
