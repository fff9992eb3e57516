import test from 'ava';
import { parseRtspUrl } from '../../../../src/protocols/rtsp/url.ts';

test('an RTSP URL is split into host, user and transport, and what the server sees of it', (t) => {
  const cases = {
    'rtsp://cam/live': {
      host: 'cam',
      port: 554,
      href: 'rtsp://cam/live',
      user: undefined,
      password: '',
      transport: undefined,
    },
    'RTSPC://10.0.0.1:8554/a/b?x=1&y': { host: '10.0.0.1', port: 8554, href: 'rtsp://10.0.0.1:8554/a/b?x=1&y' },
    'rtsp://[fe80::1]:8554': { host: 'fe80::1', port: 8554, href: 'rtsp://[fe80::1]:8554' },
    'rtsp://user:p%40ss:w@cam/live': { user: 'user', password: 'p@ss:w', href: 'rtsp://cam/live' },
    'rtsp://user:p@ss@cam/live': { user: 'user', password: 'p@ss', host: 'cam' },
    'rtsp://user:100%@cam/': { password: '100%' },
    'rtsp://user@cam/': { user: 'user', password: '' },
    'rtsp://cam/live?transport=UDP': { transport: 'udp', href: 'rtsp://cam/live' },
    'rtsp://cam/live?a=1&transport=tcp&b=2#x': { transport: 'tcp', href: 'rtsp://cam/live?a=1&b=2' },
    'rtsp://cam/live?transport=multicast': { transport: undefined, href: 'rtsp://cam/live?transport=multicast' },
  };
  for (const [url, expected] of Object.entries(cases)) t.like(parseRtspUrl(url), expected, url);
});

test('a malformed RTSP URL is rejected', (t) => {
  for (const url of [
    '',
    'rtsp://',
    'rtsp:///live',
    'http://cam/',
    'rtsp://cam:0/',
    'rtsp://cam:99999/',
    'rtsp://cam/a b',
    'rtsp://user:12#34@cam/',
    'rtsp://cam/\r\nX: y',
    `rtsp://cam/${'x'.repeat(5000)}`,
  ]) {
    t.is(parseRtspUrl(url), undefined, url);
  }
});
