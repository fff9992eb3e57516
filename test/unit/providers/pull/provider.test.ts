import test from 'ava';
import type { ApplicationConfig } from '../../../../src/config/model.ts';
import { pullProvider } from '../../../../src/providers/pull/provider.ts';
import { application, load, serverXml } from '../../config/support.ts';

for (const [scheme, element, type] of [
  ['ovt', 'OVT', 'Ovt'],
  ['rtsp', 'RTSPPull', 'RtspPull'],
  ['rtmps', 'RTMPPull', 'RtmpPull'],
  ['srt', 'SRT', 'SRT'],
  ['https', 'MPEGTS', 'MPEGTS'],
] as const) {
  test(`the provider that pulls ${scheme} follows its configuration`, async (t) => {
    const of = async (providers: string) => {
      const { config } = await load(t, serverXml({ apps: application(`<Providers>${providers}</Providers>`) }));
      return pullProvider(config.virtualHosts[0]?.applications[0] as ApplicationConfig, [
        `${scheme}://host/app/stream`,
      ]);
    };
    const usual = { name: element, isEnabled: true, maxConnections: 0, replaces: false, keepsTimes: false };
    t.like(await of(`<${element}/>`), { ...usual, source: { type } });
    t.like(await of('<RTMP/>'), { ...usual, isEnabled: false });
    t.like(
      await of(`<${element}><MaxConnection>3</MaxConnection><TimestampMode>Original</TimestampMode></${element}>`),
      {
        ...usual,
        maxConnections: 3,
        keepsTimes: true,
      },
    );
  });
}

test('HLS has no type of its own in the API', async (t) => {
  const { config } = await load(t, serverXml({ apps: application('<Providers><MPEGTS/></Providers>') }));
  const of = (url: string) => pullProvider(config.virtualHosts[0]?.applications[0] as ApplicationConfig, [url]);
  t.is(of('https://host/app/live.m3u8?key=1').source.type, 'Unknown');
  t.is(of('https://host/app/live.ts?of=live.m3u8').source.type, 'MPEGTS');
});
