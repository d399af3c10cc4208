/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who owns a vGUID while it moves: the fencing part of a migration (docs/design/0002-migration.md), for spin. A source S and a destination D, each
 * with a journal and a VF's registers, an SM that fences, libvirt, and channels that lose, repeat and delay (messages of two lines do
 * overtake each other). Either agent may be killed between any two steps: what is not in its journal is lost. Time-outs may come at
 * any moment. tests/integration/test_model.py runs it:
 *
 *   as it is                    no error in any interleaving
 *   -DBROKEN_SM                 the SM takes lower epochs:               must be refuted
 *   -DBROKEN_SOURCE             the source does not wait for an arbiter: must be refuted
 *   -DBROKEN_SPENDING           an epoch is durable before the state that promises it: must be refuted (chaos seed 566246417279)
 *   -DFORGETS                   an SM that knows nothing may follow while the destination's agent is dead: no error
 *   -DFORGETS -DBROKEN_SILENCE  ...which reports, when it is back, what it keeps for a guest that has not come: must be refuted (seed 3035)
 */
#define S	0
#define D	1
#define CRASHES 1 /* of each agent */

mtype = { HANDOVER, ABORT, PROGRAMMED, ENDED, TOO_LATE, ACCEPTED, SUPERSEDED };
mtype = { OWNING, HANDING_OVER, COPYING, FINISHING, ABORTING, ARBITRATING, RESTORING, OVER, STARTED };
mtype = { RESERVED, PROGRAMMING, INCOMING, ENDING, GIVEN_UP, LOST };

chan to_d = [2] of { mtype, byte };
chan to_s = [2] of { mtype, byte };
chan to_sm = [2] of { byte, byte };
chan from_sm[2] = [1] of { mtype, byte };

/* The registers of a VF at either host. */
bool programmed[2];
byte epoch_of[2];

/* The SM's table; durable. */
byte sm_epoch = 1;
byte sm_owner = S;

/* The last yes of any SM: one that forgets it brings no alias back that was evicted. */
#ifdef FORGETS
#define NOBODY 2
byte given_epoch = 1;
byte given_to = S;
#else
#define given_epoch sm_epoch
#define given_to sm_owner
#endif

/* libvirt: where the guest runs, and whether a copy is under way. */
byte guest = S;
bool job;

/* Journals. */
mtype source = OWNING;
byte source_epoch = 1;
bool raised;
bool early; /* managed: the copy begins before the hand-over, and the destination lets the guest in */
mtype destination = RESERVED;
byte destination_epoch = 1;
#ifdef FORGETS
bool down, back; /* the destination's agent was killed with everything prepared, and is here again */
bool forgot;
#endif

#define send(c, m, e) if :: c!m,e :: skip fi

inline check()
{
	/* 3: one vGUID, one owner, or the SM has given it to one of them at a higher epoch than the other one has. */
	assert(!(programmed[S] && programmed[D]) || (given_to == S && given_epoch > epoch_of[D]) ||
	       (given_to == D && given_epoch > epoch_of[S]));
	/* 8: where the guest does not run, nobody takes its identity back. */
	assert(!(guest == D && programmed[S] && source == OVER))
}

active proctype sm()
{
	byte who, e;

end:	do
	:: to_sm?who,e ->
		atomic {
			if
#ifdef BROKEN_SM
			:: true ->
#else
			:: e > sm_epoch || (e == sm_epoch && who == sm_owner) ->
#endif
				/* 3: nobody takes what he has promised, unless an operator vouches, or the SM was asked at a later epoch. */
				assert(!(who == S && source == STARTED && e == source_epoch && !raised && sm_owner == D));
				sm_epoch = e;
				sm_owner = who;
#ifdef FORGETS
				given_epoch = e;
				given_to = who;
#endif
				send(from_sm[who], ACCEPTED, e)
			:: else -> send(from_sm[who], SUPERSEDED, e)
			fi;
			check()
		}
#ifdef FORGETS
	:: atomic { down && !forgot && empty(to_sm) -> forgot = true; sm_epoch = 0; sm_owner = NOBODY }
#endif
	od
}

active proctype libvirt()
{
end:	do
	:: atomic { job -> guest = D; job = false; check() }
	:: atomic { job -> job = false }
	od
}

active proctype source_agent()
{
	byte crashes, e;
	bool confirmed, asked; /* in memory only */
#ifdef BROKEN_SPENDING
	bool spent;
#endif

end:	do
	:: atomic { source == OWNING -> programmed[S] = false; source_epoch++; source = HANDING_OVER }
#ifdef BROKEN_SPENDING
	:: atomic { source == OWNING && !spent -> programmed[S] = false; source_epoch++; spent = true }
	:: atomic { source == OWNING && spent -> early = true; source = COPYING }
#else
	:: atomic { source == OWNING -> programmed[S] = false; source_epoch++; early = true; source = COPYING }
#endif

	:: atomic { source == HANDING_OVER -> send(to_d, HANDOVER, source_epoch) }
	:: atomic { early && source == COPYING -> send(to_d, HANDOVER, source_epoch) }
	:: atomic { early && source == FINISHING && !raised -> send(to_d, HANDOVER, source_epoch) }
	/* The guest is there, and waits for what was taken back. */
	:: atomic { early && source == FINISHING && raised && destination == RESERVED -> source_epoch++; raised = false }
	:: atomic { source == HANDING_OVER -> source = ABORTING }

	/* The hook at the destination looks at its journal. */
	:: atomic { source == COPYING && !asked -> asked = true; 
		job = (destination == INCOMING || early && (destination == RESERVED || destination == PROGRAMMING)) }
	:: atomic { source == COPYING && asked && !job && guest == D -> source = FINISHING }
	:: atomic { source == COPYING && asked && !job && guest == S -> source = ABORTING }

	/* The destination says that the guest has it, or that it gave it up: then what was promised is over for both. */
	:: atomic { source == FINISHING && guest == D && destination == INCOMING -> source = OVER; check() }
	:: atomic { source == FINISHING && destination == GIVEN_UP -> source_epoch++; source = OVER; check() }

	/* Its host is lost with the guest, which is started here again; nobody vouches for it. */
	:: atomic { source == OVER && guest == D && destination == INCOMING ->
		destination = LOST;
		programmed[D] = false;
		guest = S;
		source = STARTED }
	:: atomic { source == STARTED -> send(to_sm, S, source_epoch) }

	:: atomic { source == ABORTING || source == ARBITRATING -> send(to_d, ABORT, 0) }
	:: atomic { source == ABORTING -> source = ARBITRATING }

	:: atomic { source == ARBITRATING && guest == S && !raised -> source_epoch++; raised = true }
#ifdef BROKEN_SOURCE
	:: atomic { source == ARBITRATING && raised -> source = RESTORING; confirmed = true }
#else
	:: atomic { (source == ARBITRATING && raised || source == RESTORING) && !confirmed ->
		send(to_sm, S, source_epoch) }
#endif
	:: atomic { source == RESTORING && confirmed ->
		programmed[S] = true;
		epoch_of[S] = source_epoch;
		source = OVER;
		check() }

	:: atomic { to_s?PROGRAMMED,e ->
		if
		:: source == HANDING_OVER && e == source_epoch -> source = COPYING
		:: else
		fi }
	:: atomic { to_s?ENDED,e ->
		if
		:: source == ABORTING || source == ARBITRATING ->
			if
			:: !raised -> source_epoch++; raised = true
			:: else
			fi;
			source = RESTORING
		:: else
		fi }
	:: atomic { to_s?TOO_LATE,e ->
		if
		:: source == ABORTING || source == ARBITRATING -> source = FINISHING
		:: else
		fi }
	:: atomic { from_sm[S]?ACCEPTED,e ->
		if
		:: e == source_epoch && source == ARBITRATING -> source = RESTORING; confirmed = true
		:: e == source_epoch && source == RESTORING -> confirmed = true
		:: else
		fi }
	:: atomic { from_sm[S]?SUPERSEDED,e -> skip }

	/* SIGKILL and restart; a copy is looked for before another one is begun. */
	:: atomic { crashes < CRASHES ->
		crashes++;
		asked = (source != OWNING);
#ifdef BROKEN_SPENDING
		spent = false;
#endif
		confirmed = false }
	od
}

active proctype destination_agent()
{
	byte crashes, e;
	bool confirmed; /* in memory only */

end:	do
	:: atomic { destination == PROGRAMMING && !confirmed -> send(to_sm, D, destination_epoch) }
	:: atomic { destination == PROGRAMMING && confirmed ->
		programmed[D] = true;
		epoch_of[D] = destination_epoch;
		destination = INCOMING;
		check() }
	:: atomic { (destination == RESERVED || destination == INCOMING) && !job && guest == S ->
		destination = ENDING } /* the lease */
	:: atomic { destination == ENDING -> programmed[D] = false; destination = GIVEN_UP }

#ifdef FORGETS
	:: atomic { destination == INCOMING && guest == S && !back -> down = true }
	:: atomic { down -> down = false; back = true }
#ifdef BROKEN_SILENCE
	:: atomic { destination == INCOMING && back && !down -> send(to_sm, D, destination_epoch) }
#else
	:: atomic { destination == INCOMING && back && !down && guest == D -> send(to_sm, D, destination_epoch) }
	/* A question, which binds nothing: its yes gives nothing, its no is heard. */
	:: atomic { destination == INCOMING && back && !down && guest == S &&
		(destination_epoch < sm_epoch || destination_epoch == sm_epoch && sm_owner != D) -> destination = ENDING }
#endif
#endif

	/* The guest is here, and the source silent: the next epoch was promised before the copy began. */
	:: atomic { early && destination == RESERVED && guest == D ->
		destination_epoch++;
		destination = PROGRAMMING }

	:: atomic { to_d?HANDOVER,e ->
		if
		:: destination == RESERVED && e > destination_epoch ->
			destination_epoch = e;
			destination = PROGRAMMING
		:: destination == INCOMING -> send(to_s, PROGRAMMED, destination_epoch)
		:: else
		fi }
	:: atomic { to_d?ABORT,e ->
		if
		:: guest == D -> send(to_s, TOO_LATE, 0)
		:: guest == S && destination == GIVEN_UP -> send(to_s, ENDED, 0)
		:: guest == S && destination != GIVEN_UP -> destination = ENDING
		fi }
	:: atomic { from_sm[D]?ACCEPTED,e ->
		if
		:: e == destination_epoch && destination == PROGRAMMING -> confirmed = true
		:: else
		fi }
	:: atomic { from_sm[D]?SUPERSEDED,e ->
		if
		:: e == destination_epoch && destination == PROGRAMMING -> destination = ENDING
		:: else
		fi }

	:: atomic { crashes < CRASHES ->
		crashes++;
		confirmed = false }
	od
}
