import { pino } from 'pino';
import { signUrl } from '../../src/access/policy/sign.ts';
import type { PlayRequest } from '../../src/access/request.ts';
import { Registry } from '../../src/core/registry.ts';
import { aloneWith } from '../support/cluster/alone.ts';
import { playRequest } from '../support/access/access.ts';
import { addVhost } from '../support/server/live.ts';
import { median } from '../support/load/statistics.ts';
import { atMost, number, type Measurement } from './measurement.ts';

const ROUNDS = 9;
const VIEWERS = 2000;
const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 'secret',
  algorithm: 'sha256',
} as const;
const PORT_NAMED = 'https://live.example:3334/app/stream/llhls.m3u8';
/** The signer had another one: every form of the URL is tried before it. */
const PORT_ASSUMED = 'https://live.example:443/app/stream/llhls.m3u8';

/** CPU time that a signed policy adds to the admission of a viewer of WHEP or of a master playlist, in this process. */
export const admission: Measurement = {
  name: 'admission',
  run: async () => {
    const registry = new Registry();
    const shape = { applications: ['app'], publishers: { llhls: { maxConnection: 0 } } as never };
    addVhost(registry, { ...shape, hostNames: ['open.example'] });
    const signedPolicy = { ...SIGNING, enables: { providers: '', publishers: 'llhls' } };
    addVhost(registry, { ...shape, name: 'signed', hostNames: ['live.example'], signedPolicy });
    const { access, cluster } = await aloneWith(registry, { log: pino({ level: 'silent' }) });
    const sign = (url: string) =>
      signUrl(url, { url_expire: Date.now() + 3_600_000, allow_ip: '192.0.2.0/24' }, SIGNING);
    const base = playRequest({ protocol: 'llhls', playlist: 'llhls' });
    const requests = [
      { ...base, hostName: 'open.example' },
      { ...base, url: sign(PORT_NAMED) },
      { ...base, url: sign(PORT_ASSUMED).replace(':443', ':3334').replace('https', 'http'), isPortAssumed: true },
    ];
    const admit = async (request: PlayRequest): Promise<number> => {
      const before = process.threadCpuUsage();
      for (let i = 0; i < VIEWERS; i++) (await access.admitViewer(request, () => request)).end('measured');
      const { user, system } = process.threadCpuUsage(before);
      return (user + system) / 1000 / VIEWERS;
    };
    const rounds: number[][] = requests.map(() => []);
    // one after the other in each round: what else the machine does hits all of them
    for (let round = 0; round < ROUNDS; round++)
      for (const [i, request] of requests.entries()) rounds[i]?.push(await admit(request));
    const [open = 0, named = 0, assumed = 0] = rounds.map(median);
    access.close();
    registry.close('measured');
    await cluster.close();
    return [
      atMost({
        what: 'CPU that a signed policy adds to an admission, port named / assumed',
        unit: 'ms',
        digits: 4,
        values: [named - open, assumed - open],
        budget: [0.2, 0.2],
        reference: `${number(named / open, 1)} / ${number(assumed / open, 1)} x one without`,
      }),
    ];
  },
};
