package queue
import ("testing";"strings")
func TestZZ(t *testing.T){
 rdb:=ownRedis(t); l:=newLine(t,rdb); room:=openRoom(t,l,0,1)
 rdb.ConfigResetStat(t.Context())
 crowd(t,l,room,50000)
 s,_:=rdb.Info(t.Context(),"commandstats").Result()
 for _,x:=range strings.Split(s,"\n"){ t.Log(x)}
}
