/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose word counts at the SM for a vGUID (docs/design/0014-authority.md), for spin: three hosts that hand it on, an SM that is away and
 * may lose its state, requests that are lost, repeated or late, and a fourth node X that overhears every ticket and means harm. Once the SM
 * knows that the vGUID has settled elsewhere, any other host may become X's, with its name, its key and its tickets. Who owns the registers
 * of a VF is fencing.pml's; here nobody waits for the SM to give a guest on. tests/integration/test_model.py runs it:
 *
 *   as it is        X gets nothing, and where the guest runs nobody is ever refused
 *   -DREACHED       two hand-overs come to rest: must be refuted, for there is something to see; and so must each of these
 *   -DANY_HIGHER    any node may raise the epoch, as today
 *   -DBEARER        a ticket counts for whoever presents it
 *   -DREPLAYED      a ticket counts whatever the SM has heard since
 *   -DLAST_TICKET   the last ticket is presented without those by which its signer got it
 *   -DNEVER_SETTLED who has handed it over may take it back for ever
 *   -DFREED         a source that withdraws for a hand-over gives it up to anybody
 *   -DFIRST_WORD    an SM that knows nothing believes the first report
 *   -DUNDATED       ...believes tickets of whom the fabric shows, and does not know which of them are over
 *   -DOWNER_GONE    an owner whose port has gone may be followed by anybody
 *   -DANNOUNCED     no tickets: the source tells the SM whom it has named
 */
#define HOSTS  3
#define X      3
#define NOBODY 4
#define MOVES  2 /* hand-overs */

mtype = { BIND, SETTLED, WITHDRAW, NAME };		 /* what is said: bound, bound and attached, withdrawn to hand it over, named */
mtype = { NONE, HAS, GIVES, BACK, COMES, DEAD, FALLEN }; /* a host */

mtype host[HOSTS] = NONE;
byte epoch_of[HOSTS];
byte tickets_of[HOSTS]; /* it has so many of all: its own hand-over's, and all by which its signer got it */
byte runs = 0;		/* where the guest is, or comes from */

/* Signed by `from`. */
typedef ticket { byte from, to, epoch };
ticket made[MOVES];
byte n_made;

/* What is said is heard at once, or not at all: lost, or the SM is away. But one request may be late. */
mtype late = NONE;
byte late_host, late_epoch, late_tickets;

/* The SM. */
bool knows = true;
byte owner = 0, epoch = 1;
byte other = NOBODY; /* the other party of a hand-over that has not settled */
byte seen = NOBODY;  /* where the first sweep of an SM that knows nothing found it */
bool forgot, died;

/* What is being said, and where the tickets that are shown with it lead from whom the SM knows: of no state, within one step. */
hidden byte who, e, n, at, at_epoch, from, i;
hidden mtype what;

inline follow()
{
	from = NOBODY;
	at = (knows -> owner : seen);
	at_epoch = (knows -> epoch : 0);
#ifndef ANNOUNCED
	i = 0;
	do
	:: i < n ->
		if
#ifdef LAST_TICKET
		:: i + 1 != n -> skip
#endif
#ifdef REPLAYED
		:: made[i].to == who -> from = made[i].from; at = who; at_epoch = 0
#endif
		:: else ->
			if
			:: made[i].from == at && made[i].epoch > at_epoch ->
				from = at;
				at = made[i].to;
				at_epoch = made[i].epoch
			:: else
			fi
		fi;
		i++
	:: else -> break
	od;
#endif
#ifdef BEARER
	if
	:: who == X && from != NOBODY -> at = who
	:: else
	fi
#endif
}

inline take(past)
{
	/* What all of it is for. */
	assert(who != X);
	assert(host[who] != FALLEN);
	other = past;
	owner = who;
	epoch = e;
	knows = true
}

inline report()
{
	if
	:: knows && who == owner && e >= epoch -> take(other)
	:: knows && who == owner && e < epoch
	:: knows && who == other && e > epoch -> take(owner)
#ifdef ANY_HIGHER
	:: knows && who != owner && who != other && e > epoch -> take(owner)
#endif
#ifdef FREED
	:: knows && owner == NOBODY && e > epoch -> take(NOBODY)
#endif
#ifdef OWNER_GONE
	:: knows && owner < HOSTS && host[owner] == DEAD && e > epoch -> take(NOBODY)
#endif
#ifdef FIRST_WORD
	:: !knows -> take(NOBODY)
#else
	:: !knows && seen == who -> take(NOBODY)
#ifdef UNDATED
	:: !knows && seen == NOBODY
#else
	:: !knows && seen != who /* it is told to wait: settle() */
#endif
#endif
	:: else ->
		follow();
		if
#ifdef REPLAYED
		:: at == who && from != NOBODY && e > epoch -> take(from)
#else
		:: at == who && from != NOBODY && e >= at_epoch -> take(from)
#endif
		:: else ->
#ifdef ANNOUNCED
			/* It is told to wait for the source's word. */
			assert(!(who == runs && e == epoch_of[who] && host[owner] == DEAD))
#else
			assert(!(knows && who == runs && (host[who] == HAS || host[who] == COMES) && e == epoch_of[who]))
#endif
		fi
	fi;
	if
#ifndef NEVER_SETTLED
	:: what == SETTLED && knows && owner == who && epoch == e -> other = NOBODY
#endif
	:: else
	fi
}

inline hear(by, said, at_which, shown)
{
	who = by;
	what = said;
	e = at_which;
	n = shown;
	if
#ifdef FREED
	:: what == WITHDRAW && knows && who == owner && e >= epoch -> owner = NOBODY
#endif
	:: what == NAME && knows && who == owner && e >= epoch -> other = made[n - 1].to
	:: what == BIND || what == SETTLED -> report()
	:: else /* a withdrawal takes its keys from that port; whose it is does not change */
	fi
}

inline say(h, said, at_which, shown)
{
	if
	:: true -> hear(h, said, at_which, shown)
	:: late == NONE -> late = said; late_host = h; late_epoch = at_which; late_tickets = shown
	fi
}

proctype agent(byte h)
{
	byte to;

end:	do
	/* To any other host that is there. */
	:: atomic { host[h] == HAS && runs == h && n_made < MOVES ->
		select(to : 0 .. 2);
		if
		:: to != h && host[to] == NONE ->
			host[h] = GIVES;
			epoch_of[h]++;
			made[n_made].from = h;
			made[n_made].to = to;
			made[n_made].epoch = epoch_of[h];
			n_made++
		:: else
		fi }
	/* It arrives there, or does not; the guest follows. */
	:: atomic { host[h] == GIVES && runs == h && host[made[n_made - 1].to] == NONE ->
		to = made[n_made - 1].to;
		host[to] = COMES;
		epoch_of[to] = epoch_of[h];
		tickets_of[to] = n_made }
	:: atomic { host[h] == GIVES && runs == h && host[made[n_made - 1].to] == COMES -> runs = made[n_made - 1].to }
	:: atomic { host[h] == GIVES && runs != h -> host[h] = NONE }
	/* No guest has gone: it is taken back, whatever became of the other side. */
	:: atomic { host[h] == GIVES && runs == h -> host[h] = BACK; epoch_of[h]++ }
	:: atomic { host[h] == COMES && runs != h && host[runs] != GIVES -> host[h] = NONE }

	/* The SM's yes. */
	:: atomic { (host[h] == BACK || host[h] == COMES) && runs == h && knows && owner == h && epoch == epoch_of[h] ->
		host[h] = HAS }
	/* It is away, and nothing waits for it. */
	:: atomic { host[h] == COMES && runs == h -> host[h] = HAS }

	:: atomic { host[h] == HAS -> say(h, SETTLED, epoch_of[h], tickets_of[h]) }
	:: atomic { host[h] == BACK || host[h] == COMES -> say(h, BIND, epoch_of[h], tickets_of[h]) }
	:: atomic { host[h] == GIVES -> say(h, WITHDRAW, epoch_of[h] - 1, 0) }
#ifdef ANNOUNCED
	:: atomic { (host[h] == GIVES || host[h] == NONE) && n_made && made[n_made - 1].from == h ->
		say(h, NAME, made[n_made - 1].epoch - 1, n_made) }
#endif

	/* Power: of a host that has handed it over, or with the guest, which an operator has started elsewhere. */
	:: atomic { !died && host[h] == NONE && runs != h -> died = true; host[h] = DEAD }
	:: atomic { !died && host[h] == HAS && runs == h -> died = true; host[h] = DEAD }
	od
}

/* Whoever has the role admin tells the SM, which he waits for, where the guest of a dead host is started. */
inline vouch(h)
{
	if
	:: host[h] == NONE ->
		host[h] = HAS;
		tickets_of[h] = 0;
		epoch = (epoch > epoch_of[runs] -> epoch : epoch_of[runs]) + 2;
		epoch_of[h] = epoch;
		owner = h;
		other = NOBODY;
		knows = true;
		runs = h
	:: else
	fi
}

/* All who live have reported: of them, joined by their tickets, the last one. Where X has claimed it as well, an operator says so. */
inline settle()
{
	at = NOBODY;
	at_epoch = 0;
	i = 0;
	do
	:: i < HOSTS ->
		if
		:: (host[i] == HAS || host[i] == BACK || host[i] == COMES) && epoch_of[i] > at_epoch -> at = i; at_epoch = epoch_of[i]
		:: host[i] == GIVES && epoch_of[i] - 1 > at_epoch -> at = i; at_epoch = epoch_of[i] - 1
		:: else
		fi;
		i++
	:: else -> break
	od;
	if
	:: at != NOBODY -> owner = at; epoch = at_epoch; other = NOBODY; knows = true
	:: else
	fi
}

active proctype world()
{
end:	do
	:: atomic { late != NONE -> hear(late_host, late, late_epoch, late_tickets); late = NONE; late_host = 0; late_epoch = 0; late_tickets = 0 }
	:: atomic { !forgot ->
		forgot = true;
		knows = false;
		owner = NOBODY;
		other = NOBODY;
		epoch = 0;
		late = NONE; /* its connection has ended with the SM */
		late_host = 0;
		late_epoch = 0;
		late_tickets = 0;
		if
		:: host[runs] == HAS -> seen = runs
		:: true -> seen = NOBODY /* no guest's driver is up */
		fi }
	:: atomic { !knows && (seen == NOBODY || host[seen] != HAS) -> settle() }
	:: atomic { host[runs] == DEAD -> vouch(0) }
	:: atomic { host[runs] == DEAD -> vouch(1) }
	:: atomic { host[runs] == DEAD -> vouch(2) }
#ifdef REACHED
	:: atomic { owner == 2 && other == NOBODY && n_made == MOVES && made[1].to == 2 && runs == 2 -> assert(false) }
#endif
	od
}

#ifdef NEVER_SETTLED
#define IS_SETTLED true
#else
#define IS_SETTLED (other == NOBODY)
#endif
#define NOBODY_FELL (host[0] != FALLEN && host[1] != FALLEN && host[2] != FALLEN)
#define FALLS(h)                                                                                                                   \
	knows && IS_SETTLED && owner == runs && runs != h && host[runs] == HAS && epoch == epoch_of[runs] && host[h] == NONE && NOBODY_FELL

active proctype attacker()
{
end:	do
	:: atomic { FALLS(0) -> host[0] = FALLEN }
	:: atomic { FALLS(1) -> host[1] = FALLEN }
	:: atomic { FALLS(2) -> host[2] = FALLEN }
	:: atomic { hear(X, SETTLED, epoch + 1, n_made) }
	:: atomic { hear(X, BIND, epoch + 2, n_made) }
	:: atomic { host[0] == FALLEN -> hear(0, SETTLED, epoch + 1, n_made) }
	:: atomic { host[1] == FALLEN -> hear(1, SETTLED, epoch + 1, n_made) }
	:: atomic { host[2] == FALLEN -> hear(2, SETTLED, epoch + 1, n_made) }
	od
}

init
{
	atomic {
		host[0] = HAS;
		epoch_of[0] = 1;
		run agent(0);
		run agent(1);
		run agent(2)
	}
}
