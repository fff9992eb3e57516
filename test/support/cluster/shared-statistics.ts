import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Cluster } from '#cluster';
import { answerReports, askForReport } from '../../../src/api/statistics-reports.ts';
import type { Registry } from '../../../src/core/registry.ts';
import { OtherNodes } from '../../../src/peers/other-nodes.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import { SharedStatistics } from '../../../src/stats/shared-statistics.ts';

/** Statistics of a node that does nothing but count. */
export function sharedStatistics(
  t: Pick<ExecutionContext, 'teardown'>,
  cluster: Cluster,
  registry: Registry,
): SharedStatistics {
  const calls = new PeerCalls(cluster, pino({ level: 'silent' }));
  const statistics = new SharedStatistics({ cluster, registry, ask: askForReport(new OtherNodes(cluster, calls)) });
  answerReports(calls, statistics);
  t.teardown(() => statistics.close());
  return statistics;
}
