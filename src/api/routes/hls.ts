import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type, { type Static } from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import type { DumpState, StreamDumps } from '../../publishers/hls/dump/stream-dumps.ts';
import type { OwnStream } from '../../publishers/hls/local/own-streams.ts';
import type { PlaylistPublisher } from '../../publishers/hls/publisher.ts';
import { shown } from '../config-schema.ts';
import { answers, done, noPayload, objectOf, ok } from '../envelope.ts';
import { readConclusion, readDumpChoice, readDumpRequest } from '../requests/hls-request.ts';
import { findStream, StreamPath } from '../lookup.ts';

const STREAM = '/v1/vhosts/:vhost/apps/:app/streams/:stream(^[^:]+$)';

/** A dump of an output stream (docs/compatibility.md#recordings-pushes-dumps). */
const DumpInfo = Type.Object({
  enabled: Type.Boolean(),
  id: Type.String(),
  infoFile: Type.Optional(Type.String()),
  outputPath: Type.String(),
  outputStreamName: Type.String(),
  playlist: Type.Optional(Type.Array(Type.String())),
  /** Reason of the state `error`. */
  reason: Type.Optional(Type.String()),
  state: Type.Enum(['running', 'error']),
  userData: Type.Optional(Type.String()),
});
type DumpInfo = Static<typeof DumpInfo>;

/**
 * HLS of a stream: dumps of its files, its keys, and the end of its playlists. The node that has the stream answers.
 * @param publishers of all kinds of HLS
 */
export function hlsRoutes(registry: Registry, publishers: readonly PlaylistPublisher[]): FastifyPluginAsyncTypebox {
  /** @throws vhostNotFound, applicationNotFound, streamNotFound, outputNotFound, llhlsStreamNotFound */
  const dumpsOf = (path: Static<typeof StreamPath>, output: string): StreamDumps => {
    const input = findStream(registry, path);
    const place = `${path.vhost}/${path.app}/${output}`;
    if (!input.outputs.has(output)) throw kilnError('outputNotFound', place);
    const application = registry.vhost(path.vhost).application(path.app);
    const llhls = publishers.find(({ form }) => form.kind === 'llhls')?.live(application, output);
    if (llhls === undefined) throw kilnError('llhlsStreamNotFound', place);
    return llhls.dumps;
  };

  /** HLS of all output streams of a stream. @throws vhostNotFound, applicationNotFound, streamNotFound */
  const packaged = (path: Static<typeof StreamPath>): OwnStream[] => {
    const input = findStream(registry, path);
    const application = registry.vhost(path.vhost).application(path.app);
    return [...input.outputs.keys()].flatMap((output) =>
      publishers.flatMap((publisher) => publisher.live(application, output) ?? []),
    );
  };

  return async (app) => {
    const params = StreamPath;
    const ids = answers(Type.Array(Type.String()));
    const start = { params, body: shown('DumpCreation'), response: ids, summary: 'Dump LL-HLS to files' };
    app.post(`${STREAM}::startHlsDump`, { schema: start }, async ({ params: path, body }) => {
      const { output, request } = readDumpRequest(body);
      await dumpsOf(path, output).start(request);
      return ok([request.id]);
    });

    const stop = { params, body: shown('DumpChoice'), response: ids, summary: 'Stop dumps of LL-HLS' };
    app.post(`${STREAM}::stopHlsDump`, { schema: stop }, async ({ params: path, body }) => {
      const { output, id } = readDumpChoice(body);
      return ok(await dumpsOf(path, output).stop(id));
    });

    const response = answers(Type.Array(DumpInfo));
    const list = { params, body: shown('DumpChoice'), response, summary: 'List the dumps of LL-HLS' };
    app.post(`${STREAM}::hlsDumps`, { schema: list }, ({ params: path, body }) => {
      const { output, id } = readDumpChoice(body);
      const dumps = dumpsOf(path, output).list();
      return ok(dumps.filter((dump) => id === undefined || dump.id === id).map((dump) => infoOf(output, dump)));
    });

    const rotation = { params, body: shown('KeyRotation'), response: noPayload, summary: 'Encrypt with the next key' };
    app.post(`${STREAM}::rotateKey`, { schema: rotation }, ({ params: path, body }) => {
      objectOf(body ?? {});
      const encrypted = packaged(path).filter(({ stream }) => stream.encrypted);
      if (encrypted.length === 0) throw kilnError('drmNotFound', `${path.vhost}/${path.app}/${path.stream}`);
      for (const { stream } of encrypted) stream.rotateKey();
      return done;
    });

    const conclusion = { params, body: shown('HlsConclusion'), response: noPayload, summary: 'End the HLS playlists' };
    app.post(`${STREAM}::concludeHlsLive`, { schema: conclusion }, ({ params: path, body }) => {
      const urgent = readConclusion(body);
      const streams = packaged(path);
      if (streams.length === 0) throw kilnError('publisherNotFound', path.vhost, path.app);
      for (const { stream } of streams) stream.conclude(urgent);
      return done;
    });
  };
}

function infoOf(
  outputStreamName: string,
  { id, outputPath, playlist, infoFile, userData, reason }: DumpState,
): DumpInfo {
  return {
    id,
    outputStreamName,
    outputPath,
    enabled: true,
    state: reason === undefined ? 'running' : 'error',
    ...(infoFile !== undefined && { infoFile }),
    ...(userData !== undefined && { userData }),
    ...(playlist.length > 0 && { playlist: [...playlist] }),
    ...(reason !== undefined && { reason }),
  };
}
