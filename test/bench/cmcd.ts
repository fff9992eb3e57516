import { carriedReport, queryWithoutReport } from '../../src/quality/carried-report.ts';
import { QualityReports } from '../../src/quality/quality-reports.ts';
import { parseRequest } from '../../src/web/lean-http/request.ts';
import { PLAYER_REPORTS } from '../support/quality/player-reports.ts';
import type { Measurement } from './measurement.ts';
import { costLine, ROUNDS } from './ratio.ts';

const REQUESTS = 20_000;
/** Microseconds that reading a report may take. */
const MOST_US = 20;
const NAMES = { vhost: 'default', app: 'app', stream: 'stream' };

/** CPU time that a report of a player adds to a request, in this process. The reference reads the rest of the same request. */
export const cmcd: Measurement = {
  name: 'cmcd',
  run: async () => {
    const source = { ended: false };
    const quality = new QualityReports();
    const requests = PLAYER_REPORTS.map(({ query = '', headers = {} }) => {
      const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const url = `/app/stream/abcdefgh/part_0_17_2_video_AbCdEfGh_llhls.m4s${query === '' ? '' : `?${query}`}`;
      return {
        query,
        headers,
        head: `GET ${url} HTTP/1.1\r\nHost: localhost:3333\r\nUser-Agent: bench\r\n${fields.join('')}\r\n`,
      };
    });
    const read = (): void => {
      for (const { query, headers } of requests) {
        queryWithoutReport(query);
        const report = carriedReport(query, headers);
        if (report !== undefined) quality.take(report, 'request', source, NAMES, 'video_0');
      }
    };
    const parse = (): void => {
      for (const { head } of requests) parseRequest(head, undefined as never, undefined);
    };
    const microseconds = (what: () => void): number => {
      const before = process.threadCpuUsage();
      for (let count = 0; count < REQUESTS; count += requests.length) what();
      const { user, system } = process.threadCpuUsage(before);
      return (user + system) / REQUESTS;
    };
    // compiled by then
    for (const what of [read, parse]) microseconds(what);
    const values: number[] = [];
    const references: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      values.push(microseconds(read));
      references.push(microseconds(parse));
    }
    return [
      costLine({
        what: 'CPU that a CMCD report of a player adds to a request',
        unit: 'us',
        digits: 2,
        values,
        references,
        of: 'reading the request',
        most: MOST_US,
      }),
    ];
  },
};
