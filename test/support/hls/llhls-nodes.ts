import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import Fastify from 'fastify';
import type { PeerRequest } from '#cluster';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { QualityReports } from '../../../src/quality/quality-reports.ts';
import { RelayTree } from '../../../src/directory/relay-tree.ts';
import { HLS } from '../../../src/publishers/hls/ts/index.ts';
import { LLHLS } from '../../../src/publishers/hls/ll/index.ts';
import { PlaylistPublisher } from '../../../src/publishers/hls/publisher.ts';
import { llhlsRegistry, ROUTER, type LlhlsSetup } from './llhls.ts';
import type { MemoryCluster } from '../memory-cluster/cluster.ts';
import { nodeParts } from '../cluster/node-parts.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack, withNal } from '../media/packets.ts';
import { urisOf } from './playlist-uris.ts';
import { until } from '../time/until.ts';

export type LlhlsNode = Awaited<ReturnType<typeof openLlhlsNode>>;

/** A node of a cluster in this process: streams, LL-HLS behind HTTP that does not listen. */
export async function openLlhlsNode(
  t: ExecutionContext,
  nodes: MemoryCluster,
  id: string,
  setup: LlhlsSetup & { readonly fanOut?: number } = {},
) {
  const { registry, vhost } = llhlsRegistry(setup);
  const application = vhost.application('app');
  const cluster = await nodes.open(id);
  const forward = cluster.forward.bind(cluster);
  const asked: string[] = [];
  const callees: string[] = [];
  // counted, and made all the same
  cluster.forward = (to, request: PeerRequest, timeoutMs) => {
    const { file = '' } = JSON.parse(request.body.toString()) as { readonly file?: string };
    asked.push(`${request.path}/${file}`);
    callees.push(to.id);
    return forward(to, request, timeoutMs);
  };
  const connect = cluster.connect.bind(cluster);
  const fedBy = new Map<string, Duplex>();
  cluster.connect = async (to, ...rest) => {
    const stream = await connect(to, ...rest);
    fedBy.set(to.id, stream);
    stream.on('close', () => fedBy.get(to.id) === stream && fedBy.delete(to.id));
    return stream;
  };
  const serve = cluster.serve.bind(cluster);
  const accepted = new Set<Duplex>();
  const over = Promise.withResolvers<void>();
  let silent = false;
  let slowMs = 0;
  cluster.serve = (handler, streams) =>
    serve(
      async (request, from) => {
        if (silent) await over.promise;
        if (slowMs > 0) await delay(slowMs);
        return await handler(request, from);
      },
      (stream, path, from) => {
        if (silent) stream.cork();
        accepted.add(stream);
        streams?.(stream, path, from);
      },
    );
  const { log, names, directory, calls, sessionNames, redirects, ...parts } = nodeParts(cluster, registry);
  const access = parts.access(setup.access);
  const options = {
    registry,
    cluster,
    access,
    directory,
    tree: new RelayTree(cluster, setup.fanOut ?? 8),
    calls,
    sessionNames,
    redirects,
    quality: new QualityReports(),
    log,
    tokenKeys: [Buffer.alloc(32, 7)],
  };
  const publisher = new PlaylistPublisher(LLHLS, options);
  // files are read in real time, whatever the time of the test is
  const app = Fastify({ pluginTimeout: 0, routerOptions: ROUTER });
  await app.register(publisher.routes);
  const others = setup.hls === undefined ? [] : [new PlaylistPublisher(HLS, options)];
  for (const other of others) await app.register(other.routes);
  t.teardown(async () => {
    over.resolve();
    registry.close('the test is over');
    await Promise.all([publisher, ...others].map((one) => one.close()));
    directory.close();
    names.close();
    await app.close();
  });
  return {
    id,
    quality: options.quality,
    registry,
    application,
    cluster,
    directory,
    publisher,
    /** Of LL-HLS, and of HLS with MPEG-TS where that is on. */
    publishers: [publisher, ...others],
    app,
    /** Names of the calls that it made to others, each with the file that it asked for. */
    asked,
    /** Whom it called, for each of those. */
    callees,
    /** The connections on which other nodes send it what it follows, by their ids. */
    fedBy: fedBy as ReadonlyMap<string, Duplex>,
    /** From now on it answers calls of others so much later. */
    slow: (ms: number) => {
      slowMs = ms;
    },
    /** From now on it takes calls of others and does not answer them, and sends nothing. */
    silence: () => {
      silent = true;
      for (const stream of accepted) stream.cork();
    },
    /** The sessions that it lists of a stream: the API joins those of all nodes. */
    sessions: (name = 'stream') => application.views(name).flatMap((view) => [...view.sessions()]),
    get: (url: string, headers: Record<string, string> = {}) => app.inject({ method: 'GET', url, headers }),
    children: async (master = '/app/stream/llhls.m3u8') => {
      const { body } = await app.inject(master);
      return urisOf(body, master);
    },
    goLive: async (tracks: readonly Track[], name = 'stream', replace = false, host = vhost.name) => {
      const application = registry.vhost(host).application('app');
      const source = { type: 'Rtmp', kind: 'rtmp' } as const;
      const input = await names.publish(application, name, source, { replace, maxConnections: 0, silence: 'continue' });
      input.setTracks(tracks);
      const output = application.addOutput(input, name);
      output.setTracks(tracks);
      for (const playlist of setup.playlists ?? []) output.addPlaylist(playlist);
      application.announce(output);
      return { input, output };
    },
  };
}

/** Waits until a node has heard that another one has a stream. */
export async function untilKnown(
  { directory, application }: LlhlsNode,
  owner: LlhlsNode,
  name = 'stream',
): Promise<void> {
  await until('the stream is known', () => directory.known(application, name)?.owner.id === owner.id);
}

/** A function that brings an output stream on to a media time, in seconds: the tracks 0, a picture, and 1, a sound. */
export function feeder(output: OutputStream, gop = 60) {
  let from = 0;
  return (to: number) => {
    const span = { from, to, gop };
    for (const packet of interleaved(videoPackets(videoTrack(), span).map(withNal), audioPackets(audioTrack(), span))) {
      const track = output.tracks.find(({ id }) => id === packet.track.id);
      if (track !== undefined) output.write({ ...packet, track });
    }
    from = to;
  };
}
