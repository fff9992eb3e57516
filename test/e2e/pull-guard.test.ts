import test from 'ava';
import { Kiln } from '../support/server/kiln.ts';
import { Origin } from '../support/ovt/origin.ts';
import { until } from '../support/time/until.ts';

const STREAMS = '/v1/vhosts/default/apps/app/streams';

test('streams are pulled from the networks of Modules/Pull only, and the log says what speaks against others', async (t) => {
  const origin = await Origin.start(t, 'src');
  const kiln = await Kiln.start({ ovt: true, modules: '<Pull><Networks>127.0.0.1, 10.0.0.0/8</Networks></Pull>' });
  t.teardown(() => kiln.stop());
  const pull = async (url: string, name = 'copy') =>
    (await kiln.api(STREAMS, 'POST', { name, urls: [url], properties: { retryCount: 3 } })).status;
  let seen = 0;
  for (const [url, reason] of [
    [origin.url('src').replace('127.0.0.1', '127.0.0.2'), '127.0.0.2 is in none of the networks of Modules/Pull'],
    [`ovt://127.0.0.1:${kiln.ports.api}/app/src`, 'the port belongs to this server or its cluster'],
    [`ovt://127.0.0.1:${kiln.ports.rtmp}/app/src`, 'the port belongs to this server or its cluster'],
    ['ovt://169.254.169.254/app/src', '169.254.169.254 is a link-local, reserved or unspecified address'],
    ['ovt://127.0.0.1:0/app/src', 'that is not a port number'],
    [
      'ftp://127.0.0.1/app/src',
      'streams are pulled over ovt, rtsp, rtspc, rtmp, rtmps, srt, http, https, whep, wheps, udp, not over',
    ],
  ] as const) {
    t.is(await pull(url), 502, url);
    await until(reason, () => new RegExp(reason).test(kiln.log.slice(seen)));
    seen = kiln.log.length;
  }
  t.is(await pull(origin.url('src')), 201);
});
