import {
  UnavailableError,
  type ClockReport,
  type NodeIdentity,
  type Rejection,
  type StoreReport,
  type StoreSettings,
} from '#cluster';
import type { Logger } from '../log/log.ts';

/** Callbacks that log what becomes of the stored configuration, and failed operations of the cluster. */
export function storageReports(log: Logger) {
  return {
    onDamaged: (movedTo: string, reason: string): void =>
      log.error(
        { movedTo, reason },
        'the stored configuration is damaged: it was renamed, and this server starts without it',
      ),
    // the stack of a failed connection explains nothing
    onFault: (err: Error): void =>
      log.warn(err instanceof UnavailableError ? { reason: err.message } : { err }, 'a cluster operation failed'),
  };
}

/** Callbacks that log what a cluster over Redis reports. @param own id of this node */
export function redisReports(own: string, log: Logger) {
  return {
    onStore: (report: StoreReport): void => logStore(report, log),
    onClock: (report: ClockReport): void => logClock(report, log),
    onSettings: (settings: StoreSettings): void => logSettings(settings, log),
    onRejection: (rejection: Rejection): void => logRejection(rejection, log),
    onMarkedDead: (dead: NodeIdentity): void => logDeath(dead, own, log),
  };
}

function logStore(report: StoreReport, log: Logger): void {
  const { store, since } = report;
  if (report.reachable) {
    const seconds = (report.awayMs / 1000).toFixed(1);
    return log.info(
      { event: 'store.back', redis: store, seconds: Number(seconds) },
      `Redis at ${store} is back after ${seconds} s`,
    );
  }
  const { reason } = report;
  log.error(
    { event: 'store.lost', redis: store, since: since.toISOString(), reason },
    `Redis at ${store} cannot be reached since ${since.toISOString()} (${reason}): this node goes on with what it has`,
  );
}

const REJECTED = {
  entries: 'an entry of the configuration in Redis is refused, and what this node knew of it stays',
  rows: 'what Redis has of a node is refused',
  certificates: 'calls with a node are refused',
} as const satisfies Record<Rejection['kind'], string>;

function logRejection({ kind, name, reason }: Rejection, log: Logger): void {
  const advice = kind === 'certificates' ? '' : '. Who has written it does not know the Secret of this node';
  log.error({ event: 'cluster.distrusted', kind, name, reason }, `${REJECTED[kind]}: ${name}: ${reason}${advice}`);
}

function logClock({ isWrong, aheadMs }: ClockReport, log: Logger): void {
  const fields = { event: 'clock.compared', aheadMs } as const;
  if (!isWrong) return log.info(fields, 'the clock of this node agrees with that of Redis again');
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  log.warn(
    fields,
    `the clock of this node is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of Redis: the dates in playlists ` +
      'jump when a publisher changes nodes. Does NTP run on all of them?',
  );
}

function logSettings({ evictionPolicy, writesAlone }: StoreSettings, log: Logger): void {
  if (evictionPolicy !== undefined && evictionPolicy !== 'noeviction')
    log.warn(
      { event: 'store.evicts', evictionPolicy },
      `Redis drops keys when its memory is full (maxmemory-policy ${evictionPolicy}): nodes notice it and restore what they ` +
        'know, but new streams and changes wait meanwhile. Set it to noeviction',
    );
  if (writesAlone)
    log.warn(
      { event: 'store.writesAlone' },
      'Redis acknowledges writes that no replica has (min-replicas-to-write 0): a failover loses the last of them. Nodes ' +
        'restore what they know, but changes of the configuration may be lost with the node that made them. Set it to 1',
    );
}

function logDeath({ id, incarnation }: NodeIdentity, own: string, log: Logger): void {
  const fields = { event: 'node.buried', node: id, incarnation } as const;
  if (id !== own)
    return log.warn(
      fields,
      `node ${id} has died: its connections to Redis and its cluster port are closed. What it had is free`,
    );
  log.error(
    fields,
    'the other nodes took this one for dead, because its connections to Redis were closed and its cluster port refused ' +
      'connections: it has given up its streams and tasks, and joins again. Does a firewall reject connections to the port?',
  );
}
