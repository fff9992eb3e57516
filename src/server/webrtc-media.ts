import type { ServerConfig } from '../config/model.ts';
import type { Logger } from '../log/log.ts';
import type { AdmissionServices } from './admission.ts';
import type { ClusterServices } from './cluster.ts';
import { blockList } from '../config/networks.ts';
import { LiveProducers } from '../webrtc/live-producers.ts';
import { ResourceNeighbours } from '../webrtc/signalling/resource-neighbours.ts';
import { Signalling } from '../webrtc/signalling/signalling.ts';
import { WorkerPool } from '../webrtc/worker-pool.ts';

/** Media workers and signalling that publishers and viewers over WebRTC share. */
export interface WebrtcMedia {
  readonly pool: WorkerPool;
  readonly signalling: Signalling;
  readonly producers: LiveProducers;
}

/**
 * Opens the configured WebRTC ports, for media workers that start with the first peer; undefined where WebRTC is off.
 * @throws Error when a port cannot be opened
 */
export async function openWebrtcMedia(
  { bind: { providers, publishers }, modules, defaults: { crossDomains } }: ServerConfig,
  { cluster, calls }: ClusterServices,
  { access, redirects }: AdmissionServices,
  parentLog: Logger,
): Promise<WebrtcMedia | undefined> {
  const binds = [publishers.webrtc, providers.webrtc].filter((bind) => bind !== undefined);
  if (binds.length === 0) return undefined;
  const log = parentLog.child({ module: 'webrtc' });
  const pool = await WorkerPool.create(
    binds.map(({ iceCandidates }) => iceCandidates),
    log,
  );
  return {
    pool,
    producers: new LiveProducers(),
    signalling: new Signalling({
      neighbours: new ResourceNeighbours(cluster, calls),
      access,
      redirects,
      onPeer: () => void pool.ready(),
      log,
      crossDomains,
      proxies: blockList(modules.forwardedFor?.networks),
    }),
  };
}
