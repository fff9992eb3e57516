import test from 'ava';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { freePorts } from '../support/network/ports.ts';
import { Kiln } from '../support/server/kiln.ts';
import { SrtlaSender } from '../support/srt/srtla-sender.ts';
import { until } from '../support/time/until.ts';
import type { StreamSummary } from '../../src/stats/stream-summary.ts';

test('ffmpeg publishes over two bonded links, and the stream goes on without loss when one of them dies', async (t) => {
  const [port = 0] = freePorts(1);
  const kiln = await Kiln.start({ srt: { in: `<SRTLA><Port>${port}</Port></SRTLA>` } });
  t.teardown(() => kiln.stop());
  const sender = await SrtlaSender.open(t, port, ['127.0.0.2', '127.0.0.3']);
  const publisher = new Program('ffmpeg', [
    ...patternArguments({ size: '160x90', rate: 15, gop: 15, bitrate: '200k' }),
    '-f',
    'mpegts',
    `srt://127.0.0.1:${sender.port}?streamid=default/app/bonded&pkt_size=1316&latency=4000000&connect_timeout=60000`,
  ]);
  t.teardown(() => publisher.stop());

  const { input } = await kiln.liveStream('bonded');
  const { remoteAddress, remotePort } = input.connection ?? {};
  t.true(
    sender.ends.some((end) => end.address === remoteAddress && end.port === remotePort),
    `the publisher is the link, not the proxy: ${remoteAddress}:${remotePort}`,
  );
  const figures = async () => {
    const { body } = await kiln.api<StreamSummary[]>('/v1/cluster/streams?stream=bonded');
    return body.response[0]?.srt?.in;
  };
  await until('both links carry media and get acknowledgements', () =>
    sender.links.every(({ acknowledged }) => acknowledged >= 20),
  );
  sender.cut(0);
  const [, other] = sender.links;
  const before = other?.acknowledged ?? 0;
  await until('the other link goes on', () => (other?.acknowledged ?? 0) > before + 200);
  await until('what the dead link lost was sent again', async () => ((await figures())?.retransmitted ?? 0) > 0);
  t.like(await figures(), { connections: 1, dropped: 0 });
  t.notRegex(kiln.log, /SRT messages were lost/);
  t.is(kiln.log.match(/SRT session closed/g), null, 'it was one session all along');
});
