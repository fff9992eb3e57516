import { statisticsV1 } from '../../src/stats/v1.ts';
import { AllStreams } from '../../src/stats/metrics/all-streams.ts';
import { Exposition } from '../../src/stats/metrics/exposition.ts';
import { streamFamilies } from '../../src/stats/metrics/streams.ts';
import { trafficFamilies } from '../../src/stats/metrics/traffic.ts';
import { sampleRegistry } from '../support/api/api.ts';
import { median } from '../support/load/statistics.ts';
import { audioTrack, videoTrack } from '../support/media/packets.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { costLine } from './ratio.ts';

const STREAMS = 1000;
const WARM_UP = 10;
const ROUNDS = 15;
/** Of the reference in a round: one is little. */
const WRITES = 5;
/** Of the CPU time of a scrape: what its longest turn of the event loop may take. */
const MOST_SHARE = 0.25;

/** A scrape of many streams, in this process, beside JSON of the same values. */
export const metrics: Measurement = {
  name: 'metrics',
  run: async () => {
    const registry = sampleRegistry();
    const streams = new AllStreams(registry);
    const application = registry.vhost('default').application('app');
    const inputs = Array.from({ length: STREAMS }, (_, index) => {
      const input = application.publish(
        `live${index}`,
        { type: 'Rtmp', kind: 'rtmp' },
        { replace: false, maxConnections: 0 },
      );
      const tracks = [videoTrack(), audioTrack()];
      input.setTracks(tracks);
      input.counters.received(index * 1000);
      input.counters.viewer('llhls');
      input.counters.viewer('webrtc');
      return input;
    });
    const exposition = new Exposition([
      ...streamFamilies(streams),
      ...trafficFamilies({ registry, refusals: () => [] }),
    ]);
    // reading them is the server's own work, which a reference must not depend on
    const values = inputs.map((input) => ({
      name: input.name,
      ...statisticsV1(input.counters),
      tracks: input.tracks.map(({ id }) => input.measured(id)),
    }));
    const costs: number[] = [];
    const json: number[] = [];
    const held: number[] = [];
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      const scraped = await scrape(exposition);
      const since = cpuMs();
      for (let n = 0; n < WRITES; n++) JSON.stringify(values);
      const written = (cpuMs() - since) / WRITES;
      if (round < 0) continue;
      costs.push(scraped.cpu);
      held.push(scraped.held);
      json.push(written);
    }
    streams.close();
    return lines(costs, json, held);
  },
};

function lines(costs: readonly number[], json: readonly number[], held: readonly number[]): Line[] {
  const share = median(held) / median(costs);
  return [
    costLine({
      what: `CPU of a scrape of ${number(STREAMS)} streams`,
      unit: 'ms',
      digits: 1,
      values: costs,
      references: json,
      of: 'the same values as JSON',
      reached: 8,
    }),
    {
      what: 'CPU of the longest turn of the event loop in it, as a share of that',
      measured: `${number(median(held), 1)} ms, ${number(share, 2)}`,
      budget: `<= ${MOST_SHARE}`,
      met: share <= MOST_SHARE,
    },
  ];
}

/** Milliseconds of CPU time, of all and of the longest turn of the event loop: whoever else runs here does not count. */
async function scrape(exposition: Exposition): Promise<{ cpu: number; held: number }> {
  let held = 0;
  let last = cpuMs();
  const look = (): void => {
    const now = cpuMs();
    held = Math.max(held, now - last);
    last = now;
    next = setImmediate(look);
  };
  let next = setImmediate(look);
  const since = cpuMs();
  await exposition.scrape(undefined);
  const cpu = cpuMs() - since;
  clearImmediate(next);
  return { cpu, held };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
