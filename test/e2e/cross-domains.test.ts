import test from 'ava';
import { Kiln } from '../support/server/kiln.ts';

const OWN = '<CrossDomains><Url>https://own.example</Url></CrossDomains>';
const kiln = await Kiln.start({
  server: `<Defaults>
    <CrossDomains><Url>https://shared.example</Url><Header><Key>X-Shared</Key><Value>yes</Value></Header></CrossDomains>
  </Defaults>`,
  webrtc: OWN,
});
test.after.always(() => kiln.stop());

/** What a page of an origin may do, by the answer to its preflight. */
async function allowed(url: string, origin: string): Promise<string | null> {
  const preflight = { origin, 'access-control-request-method': 'GET' };
  const { headers } = await fetch(url, { method: 'OPTIONS', headers: preflight });
  return headers.get('access-control-allow-origin');
}

test('the server-wide CrossDomains hold where there are none of its own, for the API too', async (t) => {
  const playlist = kiln.httpUrl('/app/stream/llhls.m3u8');
  const api = `http://127.0.0.1:${kiln.ports.api}/v1/vhosts`;
  for (const url of [playlist, api]) {
    t.is(await allowed(url, 'https://shared.example'), 'https://shared.example', url);
    t.is(await allowed(url, 'https://own.example'), null, url);
  }
  const { headers } = await fetch(playlist, { headers: { origin: 'https://shared.example' } });
  t.is(headers.get('x-shared'), 'yes');
});

test('CrossDomains of a publisher stand alone', async (t) => {
  const whep = kiln.httpUrl('/app/stream');
  t.is(await allowed(whep, 'https://own.example'), 'https://own.example');
  t.is(await allowed(whep, 'https://shared.example'), null);
});
