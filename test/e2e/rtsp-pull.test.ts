import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { GST, startGst } from '../support/rtsp/gst-rtsp.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { PATIENCE_MS, until, untilWorks } from '../support/time/until.ts';

const run = promisify(execFile);
const STREAMS = '/v1/vhosts/default/apps/app/streams';
const PROVIDER = '<RTSPPull/>';

async function start(t: ExecutionContext, options: KilnOptions): Promise<Kiln> {
  const kiln = await Kiln.start(options);
  t.teardown(() => kiln.stop());
  return kiln;
}

const STATISTICS = '/v2/stats/current/vhosts/default/apps/app';

interface Received {
  readonly providers: { readonly connections: { readonly rtsppull: number }; readonly totalBytesIn: number };
}

interface Probed {
  readonly streams: readonly { readonly codec_name: string }[];
  readonly packets: readonly { readonly codec_type: string; readonly pts: number; readonly dts: number }[];
}

/** What ffprobe reads of a player's playlist, in some seconds. */
async function probe(url: string): Promise<Probed> {
  const { stdout } = await run(
    'ffprobe',
    [
      '-v',
      'error',
      '-of',
      'json',
      '-show_entries',
      'stream=codec_name:packet=codec_type,pts,dts',
      '-analyzeduration',
      '1000000',
      '-read_intervals',
      '%+2',
      url,
    ],
    { timeout: PATIENCE_MS },
  );
  return JSON.parse(stdout) as Probed;
}

test.serial(
  'a camera with B-frames and A-law plays in LL-HLS with AAC, and its second address takes over',
  async (t) => {
    const pipeline = `( ${GST.h264BFrames()} ${GST.pcma()} )`;
    const servers = [
      await startGst(t, {
        mounts: { '/live': pipeline },
        auth: { user: 'viewer', password: 'secret', method: 'digest' },
      }),
      await startGst(t, { mounts: { '/live': pipeline }, protocols: ['udp'] }),
    ] as const;
    const kiln = await start(t, { providers: PROVIDER, llhls: '<SegmentDuration>2</SegmentDuration>' });
    const urls = [servers[0].url('/live', 'viewer:secret@'), servers[1].url('/live')];
    const made = await kiln.api(STREAMS, 'POST', {
      name: 'cam',
      urls,
      properties: { persistent: true, noInputFailoverTimeoutMs: 15_000 },
    });
    t.is(made.status, 201, `${JSON.stringify(made.body)} ${kiln.log}`);
    const live = await kiln.liveStream('cam');
    t.like(live.input, { sourceType: 'RtspPull', sourceUrl: urls[0] });
    t.is(live.input.connection, undefined);
    t.deepEqual(
      live.input.tracks.map(({ video, audio }) => (video ?? audio)?.codec),
      ['H264', 'PCMA'],
    );
    const stats = await kiln.api<Received>(STATISTICS);
    t.is(stats.body.response.providers.connections.rtsppull, 1);
    t.true(stats.body.response.providers.totalBytesIn > 0);

    const { streams, packets } = await untilWorks('it plays', () => probe(kiln.httpUrl('/app/cam/llhls.m3u8')));
    t.true(
      streams.some(({ codec_name: codec }) => codec === 'h264') &&
        streams.some(({ codec_name: codec }) => codec === 'aac'),
    );
    const pictures = packets.filter(({ codec_type: type }) => type === 'video');
    t.true(pictures.length > 20);
    t.true(
      pictures.some(({ pts, dts }) => pts > dts),
      'pictures are reordered',
    );
    t.true(pictures.every(({ pts, dts }, i) => pts >= dts && (i === 0 || dts > (pictures[i - 1]?.dts ?? 0))));

    await servers[0].stop();
    await until(
      'the second address has taken over',
      async () => (await kiln.stream('cam')).body.response.input.sourceUrl === urls[1],
    );
    const { body: then } = await kiln.api<Received>(STATISTICS);
    await until(
      'it goes on',
      async () =>
        (await kiln.api<Received>(STATISTICS)).body.response.providers.totalBytesIn >
        then.response.providers.totalBytesIn,
    );
    t.notRegex(kiln.log, /secret/);
    t.is((await kiln.api(`${STREAMS}/cam`, 'DELETE')).status, 200);
    t.is((await kiln.stream('cam')).status, 404);
  },
);

test.serial('a viewer gets a camera of Origins; without the provider nothing is pulled', async (t) => {
  const server = await startGst(t, { mounts: { '/cams/one': `( ${GST.h264()} ${GST.aac()} )` } });
  const vhost = `<Origins><Origin><Location>/app/</Location><Pass><Scheme>rtsp</Scheme><Urls>
    <Url>127.0.0.1:${server.port}/cams/?transport=udp</Url></Urls></Pass>
    <IgnoreRtcpSRTimestamp>true</IgnoreRtcpSRTimestamp></Origin></Origins>`;
  const kiln = await start(t, { providers: PROVIDER, vhost });
  const asked = async (): Promise<number> => (await fetch(kiln.httpUrl('/app/one/llhls.m3u8'))).status;
  // 201: it is there, and its first segment is not yet
  t.true([200, 201].includes(await asked()), kiln.log);
  await until('it plays', async () => (await asked()) === 200);
  t.like((await kiln.liveStream('one')).input, {
    sourceType: 'RtspPull',
    sourceUrl: server.url('/cams/one?transport=udp'),
  });

  const publisher = await RtmpClient.publish('taken', { port: kiln.ports.rtmp });
  t.teardown(() => publisher.close());
  t.is((await kiln.api(STREAMS, 'POST', { name: 'taken', urls: [server.url('/cams/one')] })).status, 409);

  const without = await start(t, {});
  t.is((await without.api(STREAMS, 'POST', { name: 'cam', urls: [server.url('/cams/one')] })).status, 502);
});

long('without BlockDuplicateStreamName a camera takes the name over from its holder', async (t) => {
  const server = await startGst(t, { mounts: { '/live': `( ${GST.h264()} )` } });
  const kiln = await start(t, {
    providers: '<RTSPPull><BlockDuplicateStreamName>false</BlockDuplicateStreamName></RTSPPull>',
  });
  const publisher = await RtmpClient.publish('cam', { port: kiln.ports.rtmp });
  t.teardown(() => publisher.close());
  const made = await kiln.api(STREAMS, 'POST', { name: 'cam', urls: [server.url('/live')] });
  t.is(made.status, 201, JSON.stringify(made.body));
  t.is((await kiln.liveStream('cam')).input.sourceType, 'RtspPull');
  t.is((await kiln.api(STREAMS, 'POST', { name: 'cam', urls: [server.url('/live')] })).status, 409);
});
