import test from 'ava';
import { similar } from '../../../src/config/similar.ts';

const NAMES = ['LLHLS', 'HLS', 'RTMP', 'RTSP', 'Applications', 'Name', 'TLS', 'TLSPort'];

test('likely slips of names are distinguished from other names', (t) => {
  const cases: Record<string, string | undefined> = {
    Aplications: 'Applications',
    Aplicatoins: 'Applications',
    LLHSL: 'LLHLS',
    llhls: 'LLHLS',
    RTPM: 'RTMP',
    Names: 'Name',
    TSL: 'TLS',
    Port: undefined,
    Colour: undefined,
    X: undefined,
    '': undefined,
  };
  for (const [mistyped, meant] of Object.entries(cases)) t.is(similar(mistyped, NAMES), meant, mistyped);
});
